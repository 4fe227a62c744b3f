"""Programs in surroundings that are hostile to whoever wants to look inside."""

from __future__ import annotations

import json
import os
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pythons import Python, pythons
from suite import PATIENCE_S, PROGRAMS
from tracing import Recording, trace

import ungil

PYTHONS = pythons("2.7", "3.8", "3.11", "3.11-debian", "3.12", "3.13")
# A thread, because 2.7 has no GIL without.
THREAD = "import threading; it = threading.Thread(target=int); it.start(); it.join()"


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize("python", PYTHONS, ids=str)
@pytest.mark.parametrize("how", ["exec", ""])
def test_a_shell_script_that_ends_in_python(tmp_path: Path, python: Python, how: str) -> None:
    line = f"echo shell\n{how} {python.path} -c 'print(\"python\"); {THREAD}'"
    recording = trace(tmp_path, script(tmp_path / "run it", line))
    assert recording.stdout == "shell\npython\n"
    assert recording.process["argv"][0] == python.path
    assert recording.gil["voluntary"] > 0


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_a_python_behind_env(tmp_path: Path, python: Python) -> None:
    code = "import os; print(os.environ['WORD'])"
    words = ["env", "WORD=set", "env", python.path, "-c", f"{code}; {THREAD}"]
    recording = trace(tmp_path, *words)
    assert recording.stdout == "set\n"
    assert recording.gil["voluntary"] > 0


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_output_is_the_same_to_the_byte(tmp_path: Path, python: Python) -> None:
    code = f"""
import os, subprocess, sys
print(sys.argv, os.getcwd(), sorted(it for it in os.listdir("/proc/self/fd")))
sys.stdout.flush()
{THREAD}
os.write(1, bytes(bytearray(range(256))))
os.write(2, b"to stderr")
subprocess.check_call([sys.executable, "-c", "print('from a child')"])
subprocess.check_call(["/bin/sh", "-c", "echo from a shell; env true; ls /proc/self/fd"])
"""
    words = [python.path, "-c", code, "an argument", ""]
    bare = subprocess.run(
        words,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        # Every byte is a character of its own.
        encoding="latin-1",
    )
    recording = trace(tmp_path, *words, encoding="latin-1")
    assert recording.stdout == bare.stdout
    assert recording.stderr == bare.stderr == "to stderr"


def nothing_was_recorded(recording: Recording) -> str:
    """Why a recording has no process."""
    assert recording.processes == []
    assert recording.report["notes"] == []
    (finding,) = recording.report["findings"]
    assert (finding["kind"], finding["pid"]) == ("not-recorded", None)
    return finding["text"]


def test_a_program_that_is_no_python(tmp_path: Path) -> None:
    true = shutil.which("true") or "/bin/true"
    note = nothing_was_recorded(trace(tmp_path, true))
    assert note.startswith(f"{true} is not a Python and loaded none")


def test_a_program_that_loads_no_libraries(tmp_path: Path) -> None:
    source, program = tmp_path / "main.c", tmp_path / "static"
    # Without libc, which not every machine has as an archive.
    source.write_text(
        "void _start(void) {\n"
        "#if defined(__x86_64__)\n"
        '    __asm__("mov $60, %eax; mov $7, %edi; syscall");\n'
        "#elif defined(__aarch64__)\n"
        '    __asm__("mov x8, #93; mov x0, #7; svc #0");\n'
        "#endif\n"
        "}\n",
        encoding="utf-8",
    )
    subprocess.run(["cc", "-static", "-nostdlib", "-o", program, source], check=True)
    note = nothing_was_recorded(trace(tmp_path, program, status=7))
    assert note.startswith(f"{program} is statically linked, so it could not load the hook")


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_a_program_that_closes_every_file(tmp_path: Path, python: Python) -> None:
    code = f"""
import os
os.closerange(3, 4096)
{THREAD}
# Python 3.8 aborts now and then, without ungil too, if it is forked while a thread is ending.
while len(os.listdir("/proc/self/task")) > 1:
    pass
if os.fork() == 0:
    os.closerange(0, 4096)
    {THREAD}
    os._exit(0)
assert os.wait()[1] == 0
print(os.open("/dev/null", os.O_RDONLY))
"""
    recording = trace(tmp_path, python.path, "-c", code)
    # The lowest number is free: nothing of ungil is open.
    assert recording.stdout == "3\n"
    assert len(recording.processes) == 2
    assert all(len(it["gils"]) == 1 for it in recording.processes)


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_a_program_that_goes_elsewhere(tmp_path: Path, python: Python) -> None:
    code = f"""
import os
os.chdir("/")
os.umask(0o777)
os.environ.clear()
{THREAD}
if os.fork() == 0:
    {THREAD}
    os._exit(0)
assert os.wait()[1] == 0
"""
    recording = trace(tmp_path, python.path, "-c", code)
    assert len(recording.processes) == 2
    assert all(len(it["gils"]) == 1 for it in recording.processes)
    assert oct(recording.path.stat().st_mode & 0o400) == "0o400"


@pytest.mark.skipif(os.getuid() != 0 and "CI" not in os.environ, reason="only root can be less")
@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_workers_that_give_up_root(tmp_path: Path, python: Python) -> None:
    code = f"""
import os, threading
for _ in range(3):
    if os.fork() == 0:
        os.setgid(65534)
        os.setuid(65534)
        {THREAD}
        os._exit(0)
for _ in range(3):
    assert os.wait()[1] == 0
"""
    recording = trace(tmp_path, python.path, "-c", code)
    assert len(recording.processes) == 4


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_a_limit_on_the_size_of_files_costs_the_recording_and_not_the_program(
    tmp_path: Path, python: Python
) -> None:
    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    code = f"{THREAD}; print('done')"
    recording = trace(tmp_path, python.path, "-c", code, preexec_fn=limit_files)
    assert (recording.stdout, recording.stderr) == ("done\n", "")
    assert "a limit on file size" in nothing_was_recorded(recording)


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_a_limit_that_a_program_sets_itself(tmp_path: Path, python: Python) -> None:
    code = f"""
import os, resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
{THREAD}
if os.fork() == 0:
    {THREAD}
    os._exit(0)
assert os.wait()[1] == 0
"""
    recording = trace(tmp_path, python.path, "-c", code)
    # The child cannot have buffers of its own.
    assert len(recording.processes) == 1
    assert recording.gil["voluntary"] > 0


IN_A_SMALL_DEV_SHM = (
    "import os, sys, small_dev_shm\n"
    "os.execv(sys.executable, [sys.executable, '-m', 'ungil', *sys.argv[1:]])"
)
FILLS_DEV_SHM = """
import os, threading
with open("/dev/shm/rest", "wb", 0) as rest:
    try:
        while True:
            rest.write(b"x" * 4096)
    except EnvironmentError:
        pass
null = os.open("/dev/null", os.O_RDONLY)
thread = threading.Thread(target=lambda: [os.read(null, 1) for _ in range(1000)])
thread.start()
thread.join()
"""


@pytest.mark.parametrize("python", PYTHONS, ids=str)
def test_events_that_are_lost_because_dev_shm_is_full_are_told_with_what_to_do(
    tmp_path: Path, python: Python
) -> None:
    words = ["trace", "-q", "-o", str(tmp_path / "t.pftrace"), "--json", "-"]
    outcome = subprocess.run(
        [sys.executable, "-c", IN_A_SMALL_DEV_SHM, *words, python.path, "-c", FILLS_DEV_SHM],
        env={**os.environ, "PYTHONPATH": str(PROGRAMS)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    report = json.loads(outcome.stdout)
    # In 2.7 the main thread, too, begins to use its GIL here, and neither gets a buffer.
    (process,) = report["processes"]
    assert report["lost_events"] >= 2000 or process["unrecorded_threads"] == 2
    assert report["notes"] == [
        "/dev/shm was full, so events were lost, or threads were not recorded: make room there, or "
        "make it larger (mount -o remount,size=256m /dev/shm; docker run --shm-size=256m)"
    ]


def test_a_package_whose_path_has_a_space(tmp_path: Path) -> None:
    place = tmp_path / "with space"
    place.mkdir()
    (place / "ungil").symlink_to(Path(ungil.__file__).parent, target_is_directory=True)
    # The link comes first, and the hook is found beside the package.
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONSAFEPATH": "1"}
    code = "import os; print(os.environ['LD_PRELOAD'])"
    recording = trace(tmp_path, sys.executable, "-c", code, env=environment)
    assert recording.gil["voluntary"] > 0
    assert " " not in recording.stdout
