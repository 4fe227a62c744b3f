"""What LD_PRELOAD names breaks no child, whatever that is built for, and brings the hook."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from stubs import HOOK, PRELOADED, STUB, copied
from suite import PROGRAMS

RunUngil = Callable[..., subprocess.CompletedProcess[str]]

EXPORTS = {
    # What the hook stands in for (tests/test_hook_library.py says why).
    "execv",
    "execve",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "pthread_condattr_setclock",
    "pthread_create",
    "sem_init",
    "system",
    "thrd_create",
    "vfork",
    # For the hook alone.
    "ungil_next_v1",
    "ungil_stand_in_v1",
}
COMPILERS = {
    "glibc": ["cc", "-pthread"],
    "static glibc": ["cc", "-pthread", "-static"],
    "glibc with the hook": ["cc", "-pthread", "-DMAY_OPEN"],
    "musl": ["musl-gcc"],
    "musl with the hook": ["musl-gcc", "-DMAY_OPEN"],
    "static musl": ["musl-gcc", "-static"],
}
of_x86_64 = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the loader completes no path on other machines"
)
# Where systems have a C library of 32 bits, which is a program that says its name.
LIBCS_OF_32_BITS = ("/lib32/libc.so.6", "/lib/i386-linux-gnu/libc.so.6", "/lib/libc.so.6")
# What glibc calls an x86-64 and an i386: sysdeps/x86/cpu-features.c, and AT_PLATFORM of the kernel.
# musl takes the name as it stands.
PLATFORMS = {"x86_64", "haswell", "xeon_phi", "$PLATFORM"}
PLATFORMS_OF_32_BITS = {"i686", "i586", "i486", "i386"}
MAPPED = (
    "print(sorted({line.split('/')[-1].strip() for line in open('/proc/self/maps')"
    " if '/libungil_' in line}))"
)


def printed(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def preloading(preloaded: str | Path = PRELOADED) -> dict[str, str]:
    """The environment of a child of a program that is scheduled."""
    return {**os.environ, "LD_PRELOAD": str(preloaded), "UNGIL_POLICY": "fair"}


def compiled(folder: Path, libc: str, source: str) -> str:
    program = folder / source
    command = [*COMPILERS[libc], "-O1", "-o", str(program), str(PROGRAMS / f"{source}.c")]
    subprocess.run(command, check=True)
    return str(program)


def run(words: list[str], environment: dict[str, str]) -> tuple[int, str, str]:
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


# The stub itself.


def test_the_stub_needs_no_library_and_no_version_of_a_symbol() -> None:
    dynamic = printed("readelf", "--dynamic", "--wide", str(STUB))
    assert "(INIT_ARRAY)" in dynamic
    assert "(NEEDED)" not in dynamic
    assert "(VERNEED)" not in dynamic
    undefined = printed("nm", "-D", "--undefined-only", "--format=posix", str(STUB))
    assert undefined.split()[:2] == ["dl_iterate_phdr", "w"]


def test_the_stub_exports_what_the_hook_stands_in_for() -> None:
    lines = printed("nm", "-D", "--defined-only", "--format=posix", str(STUB)).splitlines()
    assert {line.split()[0] for line in lines} == EXPORTS
    hooks = printed("nm", "-D", "--defined-only", "--format=posix", str(HOOK)).splitlines()
    assert {it for it in EXPORTS if not it.startswith("ungil")} <= {it.split()[0] for it in hooks}


@pytest.mark.parametrize("asks", [{}, {"UNGIL_SESSION": "/nonexistent"}], ids=["idle", "asked"])
@pytest.mark.parametrize("libc", COMPILERS)
def test_all_that_it_stands_in_for_works_with_every_libc(
    tmp_path: Path, libc: str, asks: dict[str, str]
) -> None:
    program = compiled(tmp_path, libc, "stand_ins")
    bare = run([program], dict(os.environ))
    assert (bare[0], bare[1].count("\n"), bare[2]) == (0, 11, "")
    assert run([program], {**os.environ, "LD_PRELOAD": PRELOADED, **asks}) == bare


@pytest.mark.parametrize("libc", COMPILERS)
def test_a_child_of_any_libc_starts_under_a_scheduled_program(
    ungil: RunUngil, tmp_path: Path, libc: str
) -> None:
    program = compiled(tmp_path, libc, "stand_ins")
    code = f"import subprocess, sys; sys.exit(subprocess.call([{program!r}]))"
    outcome = ungil("run", "-c", code)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout == run([program], dict(os.environ))[1]


@of_x86_64
def test_a_child_of_32_bits_starts_and_its_loader_says_nothing(ungil: RunUngil) -> None:
    libc = next(it for it in LIBCS_OF_32_BITS if Path(it).exists())
    bare = run([libc], dict(os.environ))
    assert (bare[0], bare[2]) == (0, "")
    assert bare[1].startswith("GNU C Library")
    assert run([libc], preloading()) == bare
    code = f"import subprocess, sys; sys.exit(subprocess.call([{libc!r}]))"
    outcome = ungil("run", "-c", code)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == bare


# Where it opens the hook.


def test_a_python_has_the_hook_whatever_is_asked_of_it() -> None:
    both = "['libungil_hook.so', 'libungil_preload.so']\n"
    python = [sys.executable, "-c", MAPPED]
    assert run(python, preloading()) == (0, both, "")
    assert run(python, {**os.environ, "LD_PRELOAD": PRELOADED}) == (0, both, "")


def test_a_program_that_can_open_nothing_has_only_the_stub() -> None:
    maps = run(["cat", "/proc/self/maps"], preloading())[1]
    assert "libungil_preload.so" in maps
    assert "libungil_hook.so" not in maps


@pytest.mark.parametrize("libc", ["glibc", "musl"])
def test_a_program_that_can_open_libraries_has_the_hook_if_something_is_asked(
    tmp_path: Path, libc: str
) -> None:
    program = compiled(tmp_path, libc, "opening")
    assert run([program], preloading()) == (0, "nothing\nstub hook\n", "")
    idle = {**os.environ, "LD_PRELOAD": PRELOADED}
    assert run([program], idle) == (0, "nothing\nstub -\n", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user")
def test_a_setuid_program_has_neither(tmp_path: Path) -> None:
    program = tmp_path / "cat"
    shutil.copy(shutil.which("cat") or "/bin/cat", program)
    os.chown(program, 65534, -1)
    program.chmod(0o4755)
    tmp_path.chmod(0o755)
    status, maps, said = run([str(program), "/proc/self/maps"], preloading())
    assert (status, said) == (0, "")
    assert "ungil" not in maps


# Which stub a loader finds.


@of_x86_64
def test_each_name_of_the_platform_has_a_stub_and_each_of_32_bits_what_does_nothing() -> None:
    found = {it.parent.name: it for it in STUB.parent.glob("*/*.so")}
    assert set(found) == PLATFORMS | PLATFORMS_OF_32_BITS
    assert {it.name for it in found.values()} == {STUB.name}
    for name in PLATFORMS:
        # Another file only in where the hook is from there.
        assert len(found[name].read_bytes()) == pytest.approx(STUB.stat().st_size, abs=64)
    for name in PLATFORMS_OF_32_BITS:
        header = printed("readelf", "--file-header", "--segments", "--wide", str(found[name]))
        assert "ELF32" in header
        assert "Intel 80386" in header
        (stack,) = [it for it in header.splitlines() if "GNU_STACK" in it]
        assert " RW " in stack


def test_the_hook_is_found_from_every_folder_and_where_the_token_is_lost() -> None:
    both = (0, "['libungil_hook.so', 'libungil_preload.so']\n", "")
    python = [sys.executable, "-c", MAPPED]
    for name in (*PLATFORMS, ""):
        assert run(python, preloading(PRELOADED.replace("$PLATFORM", name))) == both
    # As a shell does that evaluates what `ungil run --env` has printed.
    shell = f'unset PLATFORM; export LD_PRELOAD={PRELOADED}; exec "$@"'
    assert run(["sh", "-c", shell, "sh", *python], dict(os.environ)) == both


# A hook that the loader refuses.


@pytest.mark.parametrize("libc", ["glibc", "musl"])
def test_a_hook_that_the_loader_refuses_is_left_out(tmp_path: Path, libc: str) -> None:
    preloaded = copied(tmp_path, hook=b"no library")
    assert run([sys.executable, "-c", "print(1)"], preloading(preloaded)) == (0, "1\n", "")
    # What the loader said of it does not reach the program.
    program = compiled(tmp_path, libc, "opening")
    assert run([program], preloading(preloaded)) == (0, "nothing\nstub -\n", "")


def test_the_program_of_ungil_run_says_that_its_hook_was_refused(tmp_path: Path) -> None:
    preloaded = copied(tmp_path, hook=b"no library")
    shell = f"UNGIL_RUN=/dev/shm/ungil-run-0-0-$$ exec {sys.executable} -c 'print(1)'"
    status, out, said = run(["sh", "-c", f"LD_PRELOAD='{preloaded}' {shell}"], dict(os.environ))
    assert (status, out) == (0, "1\n")
    assert said.startswith("ungil: no GIL is scheduled, because the loader refuses the hook: ")
    assert said.count("\n") == 1
