"""`ungil run --green`: programs of threads do on green threads what they do on real ones.

Each program is run without ungil and green, and has to say the same both times.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from suite import PROGRAMS

RunUngil = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

GREEN = sorted((PROGRAMS / "green").glob("*.py"))
GREEN_FIRST = "import sys; assert 'gevent.monkey' in sys.modules\n"


@pytest.mark.parametrize("program", GREEN, ids=lambda path: path.stem)
def test_a_program_does_what_it_does_on_real_threads(
    ungil: RunUngil, environment: dict[str, str], tmp_path: Path, program: Path
) -> None:
    script = tmp_path / "program.py"
    shutil.copy(program, script)
    words = [sys.executable, "-Wignore", "program.py", "an argument"]
    bare = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    green = ungil("run", "--green", *words)
    assert (green.stdout, green.stderr, green.returncode) == (
        bare.stdout,
        bare.stderr,
        bare.returncode,
    )
    assert bare.stdout
    # It was green.
    script.write_text(GREEN_FIRST + program.read_text())
    assert ungil("run", "--green", *words).stdout == bare.stdout


def test_all_threads_share_one_real_thread(ungil: RunUngil) -> None:
    program = (
        "import os, threading\n"
        "go = threading.Event()\n"
        "for _ in range(50): threading.Thread(target=go.wait).start()\n"
        "print(threading.active_count(), len(os.listdir('/proc/self/task')))\n"
        "go.set()"
    )
    assert ungil("run", "-c", program).stdout == "51 51\n"
    assert ungil("run", "--green", "-c", program).stdout == "51 1\n"


@pytest.mark.parametrize("form", ["script", "-m", "-c", "command"])
def test_every_form_of_program_can_be_green(ungil: RunUngil, tmp_path: Path, form: str) -> None:
    code = "import sys; print('gevent' in sys.modules, sys.argv[1:], __name__); sys.exit(3)"
    (tmp_path / "app.py").write_text(code)
    words = {
        "script": ["app.py"],
        "-m": ["-m", "app"],
        "-c": ["-c", code],
        "command": ["sh", "-c", f'exec {sys.executable} app.py "$@"', "sh"],
    }[form]
    outcome = ungil("run", "--green", *words, "--green", "-x")
    assert (outcome.stdout, outcome.returncode) == ("True ['--green', '-x'] __main__\n", 3)
    assert outcome.stderr == ""


WAITING = {
    "an event": "threading.Event().wait()",
    "a lock": "lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "a thread": "it = threading.Thread(target=time.sleep, args=(3600,), daemon=True); it.start()"
    "; it.join()",
    "a queue": "import queue; queue.Queue().get()",
    "sleep": "time.sleep(3600)",
}
# The signal comes when the thread computes, and goes on doing so.
BESIDE_A_COMPUTATION = """\
def compute():
    os.kill(os.getpid(), number)
    while True:
        pass
it = threading.Thread(target=compute, daemon=True)
time.sleep(0)
it.start()
it.join()
"""


@pytest.mark.parametrize("wait", WAITING.values(), ids=list(WAITING))
def test_ctrl_c_interrupts_the_main_thread_wherever_it_waits(start: Start, wait: str) -> None:
    program = f"import threading, time\nprint('ready', flush=True)\n{wait}"
    process = start("run", "--green", "-c", program)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    stderr = process.communicate()[1]
    assert stderr.endswith("\nKeyboardInterrupt\n")
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize(
    ("name", "handler", "status"),
    [("SIGINT", "signal.default_int_handler", -2), ("SIGTERM", "lambda *_: sys.exit(9)", 9)],
)
def test_a_signal_that_comes_while_a_thread_computes_ends_the_program(
    start: Start, name: str, handler: str, status: int
) -> None:
    program = (
        "import os, signal, sys, threading, time\n"
        f"number = signal.{name}\nsignal.signal(number, {handler})\n{BESIDE_A_COMPUTATION}"
    )
    process = start("run", "--green", "-c", program)
    stderr = process.communicate()[1]
    assert process.returncode == status, stderr


def test_a_signal_that_was_ignored_stays_ignored(ungil: RunUngil) -> None:
    program = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    shell = f'trap "" INT; exec {sys.executable} -m ungil run --green -c "$1"'
    outcome = subprocess.run(["sh", "-c", shell, "sh", program], capture_output=True, text=True)
    assert outcome.stdout == "True\n"


HANGING = {
    "a pool": (
        "multiprocessing.Pool(2).map(abs, [-1])",
        "a multiprocessing.Pool hangs on green threads",
    ),
    "a queue in each direction": (
        "there, back = multiprocessing.Queue(), multiprocessing.Queue()\n"
        "multiprocessing.Process(target=lambda: back.put(there.get())).start()\n"
        "there.put(1)\nback.get()",
        "reading a multiprocessing.Queue right after writing to one can hang on green threads",
    ),
}


@pytest.mark.parametrize(("use", "said"), HANGING.values(), ids=list(HANGING))
def test_what_hangs_on_green_threads_says_so_before(start: Start, use: str, said: str) -> None:
    program = f"import multiprocessing\nmultiprocessing.set_start_method('fork')\n{use}"
    process = start("run", "--green", sys.executable, "-Wignore", "-c", program)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith(f"ungil: {said}: ")
    assert "ProcessPoolExecutor" in line


def test_what_works_on_green_threads_says_nothing(ungil: RunUngil, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("""\
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.pool import ThreadPool
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with ThreadPool(2) as threads, ProcessPoolExecutor(2, context) as processes:
        print(threads.map(abs, [-1, 2]), *processes.map(abs, [-3]))
    back = context.Queue()
    context.Process(target=back.put, args=(4,)).start()
    print(back.get())
""")
    outcome = ungil("run", "--green", sys.executable, "-Wignore", "program.py")
    assert (outcome.stdout, outcome.stderr) == ("[1, 2] 3\n4\n", "")


def test_the_variables_that_make_a_program_green(
    ungil: RunUngil, environment: dict[str, str]
) -> None:
    words = [sys.executable, "-c", "import os, sys; print('gevent' in sys.modules, end=' ');"]
    words[-1] += "print(os.environ.get('PYTHONPATH'))"
    for path in ("/some/where", None):
        others = {"PYTHONPATH": path} if path else {}
        given = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
        printed = ungil("run", "--green", "--env", env=given | others).stdout
        variables = dict(line.split("=", 1) for line in printed.splitlines())
        assert set(variables) == {"UNGIL_GREEN", "PYTHONPATH"}
        green = subprocess.run(words, env=given | variables, capture_output=True, text=True)
        assert green.stdout == f"True {path}\n"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--policy", "fair"], "leave out --policy or --green"),
        (["--quantum=1"], "leave out --quantum or --green"),
        (["--priority", "x=low"], "leave out --priority or --green"),
    ],
)
def test_what_is_green_is_not_scheduled(
    ungil: RunUngil, tmp_path: Path, options: list[str], sentence: str
) -> None:
    for words in (["touch", "ran"], ["--env"]):
        outcome = ungil("run", "--green", *options, *words)
        assert (outcome.returncode, outcome.stdout) == (2, "")
        assert re.fullmatch(
            f"ungil: green threads .* nothing to schedule: {sentence}\n", outcome.stderr
        )
    assert not (tmp_path / "ran").exists()


def test_a_missing_gevent_is_one_sentence_that_says_how_to_install_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    # As find_spec sees it where nothing of that name is installed.
    program = (
        "import importlib.util as util, sys\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name: None if name == 'gevent' else found(name)\n"
        "from ungil.cli import main\n"
        "sys.exit(main(['run', '--green', '-c', 'open(\"ran\", \"w\")']))"
    )
    words = [sys.executable, "-c", program]
    outcome = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert outcome.stderr == 'ungil: --green needs gevent: pip install "ungil[green]"\n'
    assert outcome.returncode == 2
    assert not (tmp_path / "ran").exists()


def test_another_interpreter_without_gevent_says_how_to_install_it_there(
    environment: dict[str, str], tmp_path: Path
) -> None:
    made = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made], check=True)
    other = f"{made}/bin/python"
    words = [sys.executable, "-m", "ungil", "run", "--green", other, "-c", "open('ran', 'w')"]
    outcome = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert outcome.stderr == (
        "ungil: --green needs gevent in the program's Python (No module named 'gevent'): "
        f"{other} -m pip install gevent\n"
    )
    assert outcome.returncode == 2
    assert not (tmp_path / "ran").exists()


def test_a_gevent_that_cannot_be_used_is_told_and_nothing_runs_on_real_threads(
    ungil: RunUngil, environment: dict[str, str], tmp_path: Path
) -> None:
    broken = tmp_path / "gevent"
    broken.mkdir()
    (broken / "__init__.py").write_text("get_hub = getcurrent = None\n")
    (broken / "monkey.py").write_text("def patch_all(): import gevent_has_lost_it\n")
    outcome = ungil(
        "run", "--green", "-c", "open('ran', 'w')", env=environment | {"PYTHONPATH": str(tmp_path)}
    )
    assert outcome.stderr == (
        "ungil: --green needs gevent in the program's Python (No module named 'gevent_has_lost_it')"
        f": {sys.executable} -m pip install gevent\n"
    )
    assert outcome.returncode == 2
    assert not (tmp_path / "ran").exists()
