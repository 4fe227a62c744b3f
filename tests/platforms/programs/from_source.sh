# Builds a Python of another Debian's source in this root: from_source.sh bookworm python3.11
set -e
suite=$1 package=$2
# The source alone; no package of that Debian may come in.
echo "deb-src http://deb.debian.org/debian $suite main" >/etc/apt/sources.list.d/source.list
export DEBIAN_FRONTEND=noninteractive
# The mirror may be a snapshot of an older day; what it has is still signed.
apt="apt-get -qq -o APT::Sandbox::User=root -o Acquire::Check-Valid-Until=no"
$apt update
$apt install -y --no-install-recommends build-essential dpkg-dev libbz2-dev libexpat1-dev \
	libffi-dev libssl-dev liblzma-dev zlib1g-dev >/dev/null
mkdir -p /usr/src/python
cd /usr/src/python
rm -rf ./*
$apt source --download-only "$package" >/dev/null
dpkg-source --no-check -x ./*.dsc source >/dev/null
cd source
# pyexpat does not say itself that it is of the core. Debug information and CPython's own tests are most of the work, and change no call.
./configure --prefix=/usr/local --quiet --with-ensurepip=no --disable-test-modules \
	--with-system-expat CFLAGS="-g0 -DPy_BUILD_CORE_MODULE" >/dev/null 2>&1
make -j2 -s >/dev/null 2>&1
make -s altinstall >/dev/null 2>&1
