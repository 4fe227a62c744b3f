# Everything a developer or a machine does with ungil. Plain `make` lists it.
# PYTHON chooses the interpreter that .venv is made with (3.11 or newer).

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
# maturin misses itself in pyproject.toml: wheels/backend.py calls it.
export MATURIN_NO_MISSING_BUILD_BACKEND_WARNING := 1

VENV := .venv
BIN := $(VENV)/bin
# The first interpreter that runs, is new enough and can make virtual environments.
CAN_DEVELOP = import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
FIND_PYTHON = for python in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
	if "$$python" -c '$(CAN_DEVELOP)' 2>/dev/null; then echo "$$python"; exit; fi; done; \
	echo "ungil needs Python >= 3.11 with venv; name one with make PYTHON=/path/to/python" >&2; exit 1

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
# ungil itself, with what the demo needs; what tests and lint need besides, and the packages of that
# alone; what benchmarks do.
DEVELOPED := $(VENV)/developed.stamp
TEST_TOOLS := $(VENV)/test.stamp
TEST_PACKAGES := $(VENV)/test-packages.stamp
BENCH_TOOLS := $(VENV)/bench.stamp
# The page of the lab is tested in a real browser, and its system calls are counted by strace; uWSGI
# is a real program that loads its Python later; a real Prometheus scrapes the examples; programs of
# another libc, and of 32 bits, are children; pages tell readers to type ssh, jq, and a line of zsh.
SYSTEM_TOOLS := $(VENV)/system.stamp
# The tools of the page's front end, as web/package-lock.json has them.
WEB_TOOLS := web/node_modules/.package-lock.json
# What builds wheels for other systems: zig.
WHEEL_TOOLS := $(VENV)/wheels.stamp
# Installs optional dependencies of pyproject.toml, and nothing else: $(call install,test lint docs).
install = $(BIN)/python -c "import sys, tomllib; \
	extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
	print(*(package for extra in sys.argv[1:] for package in extras[extra]), sep='\n')" $(1) \
	| $(BIN)/pip install --quiet --requirement /dev/stdin

# The rest of a recipe that has put Debian's packages into `missing`: $(call install_missing,the tests).
define install_missing
if (($${#missing[@]})); then \
	root=; (($$(id -u))) && root='sudo -n'; \
	echo "$(1) need $${missing[*]}: $$root apt-get install $${missing[*]}"; \
	{ $$root apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		$$root apt-get install -y -qq --no-install-recommends "$${missing[@]}"; } >/dev/null \
	|| { echo "that has failed; install $${missing[*]} as your system does it" >&2; exit 1; }; \
fi
endef

.PHONY: help
help: ## list what can be made
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

.PHONY: demo
demo: $(DEVELOPED) ## trace a web server with a background thread, show its convoy, and the cure
	$(BIN)/ungil trace --force -o target/demo.pftrace examples/convoy_server.py
	@echo; echo "and with its GIL scheduled: ungil run examples/convoy_server.py"
	$(BIN)/ungil run examples/convoy_server.py

.PHONY: picture
picture: demo ## run the demo, and draw its report for the README (docs/report-*.svg)
	$(BIN)/python docs/picture.py target/demo.pftrace

.PHONY: test
test: ## everything that has to pass before a change lands
	@# Linters and links leave a core idle by themselves, and installing waits for the network.
	$(MAKE) --jobs 6 --output-sync=target lint rust-test model web-test $(SYSTEM_TOOLS)
	$(MAKE) stress-quick
	$(MAKE) python-test

# What is made beside each other comes in an order: a cargo waits for another one in the same folder,
# pip is in another one's way, and the model fills the core that tests and linters leave idle.
ifneq (,$(and $(filter lint,$(MAKECMDGOALS)),$(filter model,$(MAKECMDGOALS))))
LATER := nice -n 10
rust-test: | rust-lint
$(DEVELOPED): | $(TEST_PACKAGES)
else
$(TEST_PACKAGES): | $(DEVELOPED)
endif

.PHONY: rust-test
rust-test: needs-cargo ## unit and property tests of the Rust crates
	MAKEFLAGS= cargo test --quiet --features ungil-heap/fault,ungil-trace/stacks
	@# These are not among them: tests from outside are what that crate has most of.
	MAKEFLAGS= cargo test --quiet -p ungil-hook --lib

.PHONY: array-soak
array-soak: $(TEST_TOOLS) ## processes that use shared arrays are killed 10,000 times at random moments
	$(BIN)/python tests/array_soak.py $(ARRAY_SOAK)

.PHONY: stress
stress: $(DEVELOPED) ## every concurrent test of the heap 1,000 times on a busy machine (hours)
	$(BIN)/python tests/stress.py --times 1000

.PHONY: stress-quick
stress-quick: $(VENV)/made.stamp needs-cargo ## the short ones of them, 50 times each
	$(BIN)/python tests/stress.py --times 50 --quick

.PHONY: model
model: needs-cargo ## the lock-free parts under every interleaving (loom)
	MAKEFLAGS= RUSTFLAGS="--cfg loom" $(LATER) cargo test --quiet --profile model -p ungil-core -p ungil-heap --lib \
		--target-dir target/loom

.PHONY: tsan
tsan: needs-cargo ## the heap's concurrent tests under ThreadSanitizer (needs a nightly Rust)
	python3 tests/tsan.py

.PHONY: python-test
python-test: $(TEST_TOOLS) $(SYSTEM_TOOLS) $(WEB_TOOLS) ## end to end tests (PYTEST='-k name' selects some)
	$(BIN)/pytest --numprocesses auto --dist worksteal $(PYTEST)

.PHONY: page
page: $(WEB_TOOLS) ## build the page of `ungil report --html` from web/ (checked in)
	cd web && node build.mjs

.PHONY: web-test
web-test: $(WEB_TOOLS) ## unit tests of the page's front end
	cd web && node test.mjs

.PHONY: rust-lint
rust-lint: needs-cargo ## formatting and clippy of the Rust crates
	cargo fmt --all --check
	MAKEFLAGS= cargo clippy --quiet --workspace --all-targets -- -D warnings

.PHONY: lint
lint: $(TEST_TOOLS) $(WEB_TOOLS) rust-lint prose habits docs ## formatting, clippy, types, prose, links, and rules that no tool knows
	@# loom only sees the atomics of atomic.rs.
	@if grep -rnE '(std|core)::sync::atomic' crates/ungil-core/src --exclude=atomic.rs; then \
		echo "ungil-core takes its atomics from crate::atomic"; exit 1; fi
	$(BIN)/python tests/arrows.py
	@said=$$($(BIN)/lint-imports --no-logo --no-cache) || { echo "$$said"; exit 1; }
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --quiet --check .
	$(BIN)/pyright --warnings
	$(BIN)/stubtest ungil._native
	$(BIN)/python tests/typed_documents.py
	cd web && node_modules/.bin/tsc
	cd web && node_modules/.bin/prettier --check --log-level warn src tests '*.mjs' '*.json'

.PHONY: habits
habits: $(TEST_TOOLS) ## workflows and issue forms by their schemas; what workflows may do
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@said=$$($(BIN)/zizmor --offline --quiet --no-progress .github 2>&1) || { echo "$$said"; exit 1; }
	@# GitHub's own schema of issue forms is in no package; this has what they have in common.
	@$(BIN)/check-jsonschema --quiet --schemafile tests/issue_form.json .github/ISSUE_TEMPLATE/[!c]*.yml
	@if command -v actionlint >/dev/null; then actionlint; fi

.PHONY: ready
ready: ## whether the version is told alike everywhere, and TAG=v1.2.3 is that version
	@TAG='$(subst ','\'',$(TAG))'; python3 tests/ready.py "$$TAG"

PYENV_ROOT ?= $(HOME)/.pyenv
# What their modules need; the flag is what tests/pythons.py expects.
PYTHON_NEEDS := build-essential libbz2-dev libffi-dev liblzma-dev libreadline-dev libsqlite3-dev \
	libssl-dev zlib1g-dev

.PHONY: pythons
pythons: ## install the Pythons that .ci/run needs and pyenv has not got (PYENV_ROOT; long)
	@missing=$$(cd tests && PYENV_ROOT=$(PYENV_ROOT) python3 -c \
		'import pythons; print(*pythons.missing())'); \
	[[ -n "$$missing" ]] || exit 0; \
	[[ -x "$(PYENV_ROOT)/bin/pyenv" ]] || git clone --quiet --depth 1 --branch v2.8.1 \
		https://github.com/pyenv/pyenv "$(PYENV_ROOT)"; \
	root=; (($$(id -u))) && root='sudo -n'; \
	{ $$root apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
		$$root apt-get install -y -qq --no-install-recommends $(PYTHON_NEEDS); } >/dev/null \
		|| echo "install $(PYTHON_NEEDS) as your system does it" >&2; \
	for version in $$missing; do PYENV_ROOT=$(PYENV_ROOT) PYTHON_CONFIGURE_OPTS=--enable-shared \
		"$(PYENV_ROOT)/bin/pyenv" install --skip-existing "$$version"; done

BUILT_PYTHONS ?=

.PHONY: built-pythons
built-pythons: ## build the Pythons that no registry has (long; BUILT_PYTHONS=musl: this one)
	python3 tests/built_pythons.py $(BUILT_PYTHONS)

.PHONY: free-threaded-test
free-threaded-test: $(TEST_TOOLS) ## share and fanout on free-threaded Pythons (long; built-pythons)
	$(BIN)/python tests/free_threaded_suite.py $(PYTEST)

# The English of what people read first; api.md is made of docstrings.
PROSE := README.md ARCHITECTURE.md CONTRIBUTING.md SECURITY.md \
	$(filter-out docs/api.md,$(wildcard docs/*.md docs/tutorials/*.md docs/decisions/*.md))
# Rules of Harper's that we do not follow: headings and names begin small, units are units, a list
# of three may do without the last comma; and those that mistake our words for others.
NOT_OURS := SentenceCapitalization UseTitleCase OrthographicConsistency OxfordComma \
	ExpandMinimum ExpandTimeShorthands ExpandMemoryShorthands ExpandControl \
	ExpandStandardInputAndOutput \
	CompoundNouns DisjointPrefixes MassNouns MergeWords MissingPreposition Overall \
	PhrasalVerbAsCompoundNoun SplitWords TheProperNounPossessive

# What messages and public docstrings have to keep of all rules; Harper's others mistake code there.
SAID := LongSentences NamedAgent Riddle Filler Term

.PHONY: prose
prose: $(TEST_TOOLS) ## the English of docs and messages: long sentences, spelling, our own rules
	@mkdir -p target; rm -rf target/prose.zip target/said
	@for rule in docs/prose/*.weir; do \
		said=$$($(BIN)/harper test $$rule 2>&1) || { echo "$$rule: $$said"; exit 1; }; done
	@cd docs/prose && $(abspath $(BIN))/python -m zipfile -c ../../target/prose.zip manifest.json *.weir
	@said=$$(RUST_BACKTRACE=0 $(BIN)/harper lint --format compact --dialect gb --quiet \
		--user-dict-path docs/prose/words.txt --weirpacks target/prose.zip \
		$(NOT_OURS:%=--ignore %) $(PROSE) 2>&1) || { echo "$$said"; exit 1; }
	@$(BIN)/python docs/said.py target/said
	@said=$$(RUST_BACKTRACE=0 $(BIN)/harper lint --format compact --dialect gb --quiet \
		--user-dict-path docs/prose/words.txt --weirpacks target/prose.zip $(SAID:%=--only %) docs/api.md \
		$$(find target/said -name '*.md') 2>&1) || { echo "$$said"; exit 1; }

# What has a `main` is a benchmark; the rest of bench/ is what they share.
BENCHES := $(sort $(basename $(notdir $(shell grep -l '__main__' bench/*.py))))
BENCH ?= $(BENCHES)

.PHONY: bench
bench: known-bench $(BENCH_TOOLS) ## all benchmarks, one after the other (hours); BENCH=flood: this one
	@mkdir -p target/bench
	@failed=(); for name in $(BENCH); do echo "bench/$$name.py"; \
		$(BIN)/python bench/$$name.py | tee target/bench/$$name.txt || failed+=($$name); done; \
	if (($${#failed[@]})); then echo "not measured: $${failed[*]}" >&2; exit 1; fi

.PHONY: gallery
gallery: $(BENCH_TOOLS) needs-display ## measure real programs, write docs/gallery.md (an hour; GALLERY=tk: this one)
	$(BIN)/python bench/gallery.py --markdown $(GALLERY)

.PHONY: needs-display
needs-display:
	@missing=(); \
	command -v Xvfb >/dev/null || missing+=(xvfb); \
	$(call install_missing,the gallery)

.PHONY: known-bench
known-bench:
	@for name in $(filter-out $(BENCHES),$(BENCH)); do \
		echo "there is no benchmark $$name; there are $(BENCHES)" >&2; exit 1; done

CONFORMANCE_PYTHONS ?= 3.11 3.13

.PHONY: conformance
conformance: $(DEVELOPED) ## CPython's own test suites, bare and under ungil, test by test (long)
	$(BIN)/python tests/conformance.py --policy interactive,fair,batch $(CONFORMANCE_PYTHONS)

.PHONY: nornir-suite
nornir-suite: $(TEST_TOOLS) ## nornir's own test suite with our runner (NORNIR=a copy of its repository)
	$(BIN)/python tests/nornir_suite.py $(NORNIR)

SOAK_PYTHONS ?= $(CONFORMANCE_PYTHONS)
SOAK_SECONDS ?= 600

.PHONY: soak
soak: $(DEVELOPED) ## random threads, processes and signals under every policy, watched (long)
	for python in $(SOAK_PYTHONS); do \
		for policy in interactive fair batch priority changing; do \
			$(BIN)/python tests/soak.py --seconds $(SOAK_SECONDS) --policy $$policy \
				--seed "$$RANDOM" --python "$$python"; done; done

POOL_SOAK ?= --workers 24 --tasks 100000 --every 0.05

.PHONY: pool-soak
pool-soak: $(DEVELOPED) ## workers of a pool are killed all the time, every task is accounted for
	$(BIN)/python tests/pool_soak.py $(POOL_SOAK)
	$(BIN)/python tests/pool_soak.py $(POOL_SOAK) --retries 1000 --method forkserver --most 0.02

POOL_PYTHON ?= $(PYENV_ROOT)/versions/3.13.0/bin/python

.PHONY: pool-conformance
pool-conformance: $(DEVELOPED) ## CPython's own tests of executors for share.Pool (POOL_PYTHON has them)
	PYTHONPATH=python $(POOL_PYTHON) tests/pool_conformance.py fork spawn forkserver

.PHONY: queue-soak
queue-soak: $(DEVELOPED) ## processes that use shared queues are killed 10,000 times at random moments
	$(BIN)/python tests/queue_soak.py $(QUEUE_SOAK)

.PHONY: attach-soak
attach-soak: $(TEST_TOOLS) ## ungil attaches to real servers 500 times each (hours; needs redis-server)
	$(BIN)/python tests/attach_soak.py $(ATTACH_SOAK)

FUZZ_SECONDS ?= 600

.PHONY: children
children: $(DEVELOPED) ## start programs of other C libraries under ungil (long; root, debootstrap, gcc-multilib)
	$(BIN)/python tests/children_matrix.py

.PHONY: platforms
platforms: $(TEST_TOOLS) $(WHEEL_TOOLS) needs-roots ## try the wheels on every Debian, write docs/platforms.md (hours; root)
	@root=; (($$(id -u))) && root='sudo -n'; \
	$$root env PATH="$$PATH" HOME="$$HOME" PYTHONPATH=tests $(BIN)/python -m platforms $(PLATFORMS)
	$(BIN)/python docs/lab_page.py

.PHONY: stranger
stranger: $(TEST_TOOLS) needs-roots ## type every command of README and the tutorials on a fresh Debian (minutes; root)
	rm -rf target/stranger/wheel
	$(BIN)/maturin build --release --quiet --out target/stranger/wheel
	@root=; (($$(id -u))) && root='sudo -n'; \
	$$root env PATH="$$PATH" PYTHONPATH=tests $(BIN)/python tests/stranger.py $(STRANGER) \
		target/stranger/wheel/ungil-*.whl

.PHONY: needs-roots
needs-roots:
	@missing=(); \
	[[ -x /usr/sbin/debootstrap ]] || missing+=(debootstrap); \
	command -v qemu-aarch64-static >/dev/null || missing+=(qemu-user-static); \
	$(call install_missing,the roots)

.PHONY: fuzz
fuzz: needs-cargo ## a heap of arbitrary bytes: errors, never a crash (long; a nightly Rust, cargo-fuzz)
	@cargo +nightly fuzz --version >/dev/null 2>&1 || { echo "make fuzz needs cargo-fuzz and a" \
		"nightly toolchain: cargo install cargo-fuzz; rustup toolchain install nightly" >&2; exit 1; }
	cd crates/ungil-heap && cargo +nightly fuzz run segment -- -max_total_time=$(FUZZ_SECONDS) \
		-timeout=20 -len_control=0 -max_len=416

.PHONY: api
api: $(TEST_TOOLS) ## write docs/api.md from the docstrings of everything public
	$(BIN)/python docs/api.py

.PHONY: lab-page
lab-page: $(DEVELOPED) ## write docs/lab.html from the recorded run in docs/lab.json; measures nothing
	$(BIN)/python docs/lab_page.py

.PHONY: man
man: $(DEVELOPED) ## write the manual page, docs/cli.md, and what shells complete, from the commands
	$(BIN)/python docs/man.py
	$(BIN)/python docs/cli.py

.PHONY: docs
docs: $(TEST_TOOLS) $(WEB_TOOLS) ## build the documentation as a site, and fail at a broken link
	@# Not --quiet: a warning that is not printed is none to --strict.
	@said=$$(NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict 2>&1) || { echo "$$said"; exit 1; }
	@echo "target/site/index.html, also without a server; $(BIN)/mkdocs serve shows it while you write"

.PHONY: wheel
wheel: $(DEVELOPED) ## build a wheel for this machine into dist/
	$(BIN)/maturin build --release --out dist

.PHONY: wheels
wheels: $(WHEEL_TOOLS) needs-cargo ## build all wheels and the sdist into dist/ (TWICE=1: compare)
	$(BIN)/python wheels/build_all.py $(if $(TWICE),--twice) $(if $(TARGET),--target $(TARGET)) \
		$(if $(INTERPRETER),--interpreter $(INTERPRETER))

.PHONY: rust-targets
rust-targets: needs-cargo ## what `make wheels` needs of Rust: the standard library of each platform (rustup)
	rustup target add aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl

.PHONY: clean
clean: ## remove everything that was made
	rm -rf target dist web/node_modules $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis
	rm -rf python/ungil/*.so python/ungil/preload
	find python tests bench examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

.PHONY: needs-cargo
needs-cargo:
	@command -v cargo >/dev/null || { echo "ungil needs Rust: https://rustup.rs" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "Rust needs a C compiler to link: install gcc" >&2; exit 1; }

# No browser or network is needed to build the page, only Node and its registry.
.PHONY: needs-node
needs-node:
	@command -v npm >/dev/null || { root=; (($$(id -u))) && root='sudo -n'; \
		echo "the page needs Node: $$root apt-get install nodejs npm"; \
		$$root apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null; } \
		|| { echo "that has failed; install Node 20 or newer: https://nodejs.org" >&2; exit 1; }
	@node -e 'process.exit(+(parseInt(process.versions.node) < 20))' || { \
		echo "the page needs Node 20 or newer, this is $$(node --version): https://nodejs.org" >&2; \
		exit 1; }

$(WEB_TOOLS): web/package-lock.json | needs-node
	cd web && npm ci --silent --no-audit --no-fund
	@touch $@

$(VENV)/made.stamp:
	python=$$($(FIND_PYTHON)); "$$python" -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade 'pip>=24' 'maturin>=1.12.1,<2'
	touch $@

# Editable: changes to Python need nothing, changes to Rust build again.
$(DEVELOPED): $(VENV)/made.stamp pyproject.toml $(RUST_SOURCES) | needs-cargo
	@# It writes into files that are there; a program that has them mapped would die of SIGBUS.
	rm -rf python/ungil/*.so python/ungil/preload
	PIP_QUIET=1 $(BIN)/maturin develop --release --quiet --extras demo
	touch $@

$(TEST_PACKAGES): $(VENV)/made.stamp pyproject.toml
	$(call install,test lint docs)
	touch $@

$(TEST_TOOLS): $(DEVELOPED) $(TEST_PACKAGES)
	touch $@

$(SYSTEM_TOOLS): | $(VENV)/made.stamp needs-node
	@missing=(); \
	command -v strace >/dev/null || missing+=(strace); \
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null \
		|| command -v google-chrome >/dev/null || missing+=(chromium); \
	command -v prometheus >/dev/null || missing+=(prometheus); \
	command -v musl-gcc >/dev/null || missing+=(musl-tools); \
	command -v ssh >/dev/null || missing+=(openssh-client); \
	command -v jq >/dev/null || missing+=(jq); \
	command -v zsh >/dev/null || missing+=(zsh); \
	[[ $$(uname -m) != x86_64 || -e /lib/ld-linux.so.2 ]] || missing+=(libc6-i386); \
	if ! command -v uwsgi >/dev/null || uwsgi --plugin python3 --version 2>&1 | grep -q UNABLE; \
		then missing+=(uwsgi-core uwsgi-plugin-python3); fi; \
	$(call install_missing,the tests)
	@touch $@

$(WHEEL_TOOLS): $(VENV)/made.stamp
	$(call install,wheels)
	touch $@

$(BENCH_TOOLS): $(DEVELOPED)
	$(call install,bench)
	touch $@
