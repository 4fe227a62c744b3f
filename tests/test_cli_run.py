"""`ungil run`: the program is scheduled, and nothing else about it is different."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pythons import Python, pythons
from scheduling import OBEYING, Obeying

import ungil as package
from ungil import _native
from ungil.environment import STARTUP

RunUngil = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[str]]

SCHEDULED = pythons("3.8", "3.11", "3.11-debian", "3.12", "3.13", since=(3, 8))
RECORDED_ONLY = [python for python in pythons("2.7") if python.version == (2, 7)]
NAMES = (
    "LD_PRELOAD",
    "PYTHONPATH",
    "UNGIL_CHILDREN",
    "UNGIL_POLICY",
    "UNGIL_PRIORITY",
    "UNGIL_QUANTUM",
    "UNGIL_SESSION",
)
PRINT_VARIABLES = f"import os; print({{n: os.environ[n] for n in {NAMES} if n in os.environ}})"
STUB = _native.preload_value(None)
# What can stand in a file or on a command line as it is.
WRITTEN = _native.preload_value(None, written=True)


@pytest.fixture
def environment(environment: dict[str, str]) -> dict[str, str]:
    """Without what `ungil run` looks at."""
    return {name: value for name, value in environment.items() if name not in NAMES}


# The program is scheduled.


@pytest.mark.parametrize("python", SCHEDULED, ids=str)
def test_a_program_obeys_the_policy_that_was_asked_for(start: Start, python: Python) -> None:
    words = (python.path, str(OBEYING))
    assert Obeying(start, "run", *words).policy() == ("interactive", 5)
    assert Obeying(start, "run", "--policy", "batch", *words).policy() == ("batch", 100)
    obeying = Obeying(start, "run", "--policy=fair", "--quantum=0.5", "--", *words)
    assert obeying.policy() == ("fair", 0.5)


@pytest.mark.parametrize("policy", _native.POLICIES)
def test_every_policy_can_be_asked_for(start: Start, policy: str) -> None:
    obeying = Obeying(start, "run", "--policy", policy, "--quantum", "7", str(OBEYING))
    assert obeying.policy() == (policy, 7)


def test_the_program_has_the_process_id_of_ungil(start: Start) -> None:
    obeying = Obeying(start, "run", str(OBEYING))
    assert obeying.pid == obeying.process.pid


def test_the_variables_of_a_scheduled_program(ungil: RunUngil) -> None:
    outcome = ungil("run", "-c", PRINT_VARIABLES)
    assert outcome.stdout == f"{ {'LD_PRELOAD': STUB, 'UNGIL_POLICY': 'interactive'} }\n"
    assert outcome.stderr == ""


def test_variables_stand_in_for_options_and_options_win(
    start: Start, environment: dict[str, str]
) -> None:
    inherited = environment | {"UNGIL_POLICY": "fair", "UNGIL_QUANTUM": "20"}
    assert Obeying(start, "run", str(OBEYING), env=inherited).policy() == ("fair", 20)


def test_libraries_that_others_preload_stay(ungil: RunUngil, environment: dict[str, str]) -> None:
    libm = "libm.so.6"
    outcome = ungil("run", "-c", PRINT_VARIABLES, env=environment | {"LD_PRELOAD": libm})
    assert f"'LD_PRELOAD': '{STUB}:{libm}'" in outcome.stdout
    twice = ungil("run", "-m", "ungil", "run", "--policy", "fair", "-c", PRINT_VARIABLES)
    assert twice.stdout == f"{ {'LD_PRELOAD': STUB, 'UNGIL_POLICY': 'fair'} }\n"


def test_priorities_come_with_the_start_up_module_that_applies_them(
    ungil: RunUngil, environment: dict[str, str]
) -> None:
    rules = ["worker-*=low", "Thread-1 (a=b)=high"]
    options = [f"--priority={rules[0]}", "--priority", rules[1]]
    outcome = ungil("run", *options, "sh", "-c", 'echo "$PYTHONPATH"; echo "$UNGIL_PRIORITY"')
    assert outcome.stdout.splitlines() == [STARTUP, *rules]
    inherited = environment | {"PYTHONPATH": "/a:/b", "UNGIL_PRIORITY": "x=high"}
    print_both = 'echo "$PYTHONPATH"; echo "$UNGIL_PRIORITY"'
    outcome = ungil("run", "sh", "-c", print_both, env=inherited)
    assert outcome.stdout == f"{STARTUP}:/a:/b\nx=high\n"
    outcome = ungil("run", *options, "sh", "-c", print_both, env=inherited)
    assert outcome.stdout.splitlines() == [f"{STARTUP}:/a:/b", *rules]


# Its children.

WITH_CHILDREN = """\
import os, subprocess, sys, threading
sys.path.insert(0, {folder!r})
from obeying import policy
thread = threading.Thread(target=int)
thread.start(); thread.join()
print("itself", policy())
print("started", subprocess.check_output([sys.executable, {program!r}]).decode().strip())
sys.stdout.flush()
if os.fork() == 0:
    print("forked", policy())
    sys.stdout.flush()
    os._exit(0)
os.wait()
"""


@pytest.fixture
def with_children(tmp_path: Path) -> str:
    """A program that says what it, a program that it starts, and a fork of it obey."""
    started = tmp_path / "started.py"
    folder = str(OBEYING.parent)
    started.write_text(f"import sys; sys.path.insert(0, {folder!r}); import obeying\n")
    with started.open("a") as file:
        file.write("print(obeying.policy())\n")
    return WITH_CHILDREN.format(folder=folder, program=str(started))


@pytest.mark.parametrize("python", SCHEDULED, ids=str)
def test_children_obey_too(ungil: RunUngil, python: Python, with_children: str) -> None:
    outcome = ungil("run", "--policy", "fair", python.path, "-c", with_children)
    assert outcome.stdout == "itself 2 5\nstarted 2 5\nforked 2 5\n"


@pytest.mark.parametrize("python", SCHEDULED, ids=str)
def test_children_can_be_left_alone(ungil: RunUngil, python: Python, with_children: str) -> None:
    words = ("run", "--no-children", "--policy", "fair", python.path, "-c")
    outcome = ungil(*words, with_children)
    assert outcome.stdout == "itself 2 5\nstarted no hook\nforked 0 5\n"
    assert ungil(*words, PRINT_VARIABLES).stdout == "{}\n"


# It ends as it would without ungil.


@pytest.mark.parametrize("status", [0, 1, 2, 7, 255])
def test_the_exit_status_is_the_programs(ungil: RunUngil, status: int) -> None:
    assert ungil("run", "-c", f"raise SystemExit({status})").returncode == status


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGUSR1", "SIGPIPE"])
def test_a_death_by_signal_is_the_programs(ungil: RunUngil, name: str) -> None:
    kill = f"kill -{name.removeprefix('SIG')} $$"
    outcome = ungil("run", "sh", "-c", kill)
    assert (outcome.returncode, outcome.stderr) == (-signal.Signals[name], "")


def test_a_signal_reaches_the_program(start: Start) -> None:
    program = (
        "import signal as s, sys\n"
        "s.signal(s.SIGUSR1, lambda n, _: sys.exit(print('got', n)))\n"
        "print('ready', flush=True)\n"
        "s.pause()\n"
    )
    process = start("run", "-c", program)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGUSR1)
    assert process.communicate()[0] == f"got {int(signal.SIGUSR1)}\n"
    assert process.returncode == 0


def test_the_program_starts_with_the_signals_that_it_would_have_without_ungil(
    ungil: RunUngil,
) -> None:
    words = ["sed", "-n", "s/^Sig\\(Blk\\|Ign\\|Cgt\\):.//p", "/proc/self/status"]
    bare = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    assert len(bare.stdout.splitlines()) == 3
    assert ungil("run", *words).stdout == bare.stdout


@pytest.mark.parametrize("name", ["INT", "QUIT", "HUP", "TERM"])
def test_a_signal_that_was_ignored_stays_ignored(start: Start, name: str) -> None:
    program = f"import signal as s; print(s.getsignal(s.SIG{name}) is s.SIG_IGN)"
    shell = f'trap "" {name}; exec "$@"'
    words = ["sh", "-c", shell, "sh", sys.executable, "-m", "ungil", "run", "-c", program]
    assert start(args=words).communicate()[0] == "True\n"


def test_standard_streams_and_descriptors_are_the_programs_own(ungil: RunUngil) -> None:
    program = "import sys; d = sys.stdin.read(); sys.stdout.write(d[::-1]); sys.stderr.write('E')"
    outcome = ungil("run", "-c", program, input="abc")
    assert (outcome.stdout, outcome.stderr) == ("cba", "E")
    reader, writer = os.pipe()
    try:
        ungil("run", "-c", f"import os; os.write({writer}, b'x')", pass_fds=(writer,))
        os.close(writer)
        assert os.read(reader, 10) == b"x"
    finally:
        os.close(reader)


def test_no_descriptor_of_ungil_is_left_open(ungil: RunUngil) -> None:
    listing = ("ls", "/proc/self/fd")
    bare = subprocess.run(listing, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ungil("run", *listing).stdout == bare.stdout


def test_bytes_that_are_no_text_pass_in_environment_and_arguments(
    ungil: RunUngil, environment: dict[str, str]
) -> None:
    program = "import os, sys; print(ascii(sys.argv[1]), ascii(os.environ['ODD']))"
    outcome = ungil("run", "-c", program, "\udcff", env=environment | {"ODD": "\udcfe"})
    assert outcome.stdout == r"'\udcff' '\udcfe'" + "\n"


def test_what_follows_the_program_belongs_to_it(ungil: RunUngil, tmp_path: Path) -> None:
    arguments = ["--help", "--policy", "x", "--", "-m", "--env"]
    (tmp_path / "app.py").write_text("import sys; print(sys.argv[1:])")
    assert ungil("run", "app.py", *arguments).stdout == f"{arguments}\n"
    assert ungil("run", "--policy", "fair", "-mapp", *arguments).stdout == f"{arguments}\n"
    assert ungil("run", "sh", "-c", "exit 3").returncode == 3


def test_nothing_is_recorded(ungil: RunUngil, tmp_path: Path) -> None:
    ungil("run", "-c", "pass")
    assert list(tmp_path.iterdir()) == []


# Programs that cannot be scheduled run all the same.


@pytest.mark.parametrize("python", RECORDED_ONLY, ids=str)
def test_a_python_that_is_too_old_runs_unscheduled(ungil: RunUngil, python: Python) -> None:
    run_child = f"import subprocess; subprocess.call([{sys.executable!r}, '-c', {POLICY_NAME!r}])"
    outcome = ungil("run", python.path, "-c", f"{run_child}; raise SystemExit(3)")
    # The programs that it starts need not be too old.
    assert (outcome.returncode, outcome.stdout) == (3, "interactive\n")
    assert outcome.stderr == (
        f"ungil: {python.path} is older than Python 3.7, and its GIL cannot be scheduled; "
        "it runs unscheduled\n"
    )


POLICY_NAME = "import os; print(os.environ['UNGIL_POLICY'])"


def test_a_program_that_the_hook_cannot_be_loaded_into_is_left_alone(
    ungil: RunUngil, tmp_path: Path
) -> None:
    privileged = tmp_path / "env"
    shutil.copy(shutil.which("env") or "/usr/bin/env", privileged)
    privileged.chmod(0o4755)
    outcome = ungil("run", "--policy", "fair", str(privileged))
    assert outcome.returncode == 0
    assert "UNGIL" not in outcome.stdout
    assert "LD_PRELOAD" not in outcome.stdout
    assert outcome.stderr == (
        f"ungil: {privileged} is setuid or setgid, so the loader does not preload the hook; "
        "it runs unscheduled\n"
    )


def test_a_package_whose_path_has_a_space(tmp_path: Path, environment: dict[str, str]) -> None:
    place = tmp_path / "with space"
    place.mkdir()
    (place / "ungil").symlink_to(Path(package.__file__).parent, target_is_directory=True)
    # The link comes first, and the stubs are found in the package.
    variables = environment | {"PYTHONPATH": str(place), "PYTHONSAFEPATH": "1"}
    preload = subprocess.run(
        [sys.executable, "-m", "ungil", "run", "sh", "-c", 'printf %s "$LD_PRELOAD"'],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    link = Path(preload.partition("/preload/")[0]) / "preload"
    try:
        assert " " not in preload
        assert link.readlink() == place / "ungil" / "preload"
    finally:
        link.unlink()
        link.parent.rmdir()


# --env.


def test_variables_are_printed_for_programs_that_start_elsewhere(
    ungil: RunUngil, environment: dict[str, str]
) -> None:
    outcome = ungil("run", "--env", "--policy", "batch", "--quantum", "2.50", "--no-children")
    assert outcome.stdout.splitlines() == [
        f"LD_PRELOAD={WRITTEN}",
        "UNGIL_POLICY=batch",
        "UNGIL_QUANTUM=2.5",
        "UNGIL_CHILDREN=0",
    ]
    program = shlex.join([sys.executable, "-c", PRINT_VARIABLES])
    shell = f"exec env $({shlex.join([sys.executable, '-m', 'ungil', 'run', '--env'])}) {program}"
    printed = subprocess.run(["sh", "-c", shell], env=environment, capture_output=True, text=True)
    assert printed.stdout == f"{ {'LD_PRELOAD': WRITTEN, 'UNGIL_POLICY': 'interactive'} }\n"


def test_variables_that_need_quotes_have_them(ungil: RunUngil) -> None:
    rules = ["it's *=low", "b=high"]
    outcome = ungil("run", "--env", *(f"--priority={rule}" for rule in rules))
    words = dict(word.split("=", 1) for word in shlex.split(outcome.stdout))
    assert words["UNGIL_PRIORITY"].splitlines() == rules


def test_variables_are_printed_for_no_program(ungil: RunUngil) -> None:
    outcome = ungil("run", "--env", "app.py")
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert outcome.stderr == "ungil: --env runs no program; leave out 'app.py'\n"


# Pages that killed processes have left.


@pytest.fixture
def pages() -> Iterator[dict[str, Path]]:
    """Files that look like control pages: a dead process's, a living one's, other people's."""
    with subprocess.Popen(["true"]) as ended:
        pass
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as living:
        namespace = Path("/proc/self/ns/pid").stat().st_ino
        folder, user = Path("/dev/shm"), os.geteuid()
        pages = {
            "ended": folder / f"ungil-policy-{user}-{namespace}-{ended.pid}",
            "mark": folder / f"ungil-run-{user}-{namespace}-{ended.pid}",
            "living": folder / f"ungil-policy-{user}-{namespace}-{living.pid}",
            "elsewhere": folder / f"ungil-policy-{user}-{namespace + 1}-{ended.pid}",
            "somebody's": folder / f"ungil-policy-{user + 1}-{namespace}-{ended.pid}",
            "foreign": folder / f"ungil-policy-{user}-{namespace}-{ended.pid}x",
        }
        for page in pages.values():
            page.touch()
        yield pages
        for page in pages.values():
            page.unlink(missing_ok=True)


def test_stale_control_pages_are_cleared_away(ungil: RunUngil, pages: dict[str, Path]) -> None:
    ungil("run", "true")
    assert [name for name, page in pages.items() if not page.exists()] == ["ended", "mark"]


def test_the_doctor_clears_them_away_too(ungil: RunUngil, pages: dict[str, Path]) -> None:
    # It need not say so: a program that another test runs meanwhile may come first.
    outcome = ungil("doctor", "--clean", "--json")
    assert outcome.returncode == 0, outcome.stderr
    removed = {it["path"] for it in json.loads(outcome.stdout)["removed"]}
    assert removed.isdisjoint(map(str, [pages["living"], pages["elsewhere"], pages["somebody's"]]))
    assert [name for name, page in pages.items() if not page.exists()] == ["ended", "mark"]


def test_a_program_that_is_killed_leaves_no_page_behind_its_recording(ungil: RunUngil) -> None:
    code = (
        "import glob, os\n"
        "print(*glob.glob(f'/dev/shm/ungil-policy-*-{os.getpid()}'), flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    outcome = ungil("trace", "-q", "-c", code)
    assert outcome.returncode == -9
    page = Path(outcome.stdout.strip())
    assert page.name.startswith("ungil-policy-")
    assert not page.exists()


# Mistakes: one sentence, exit code 2, nothing run.


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no program to run; name a script, -m MODULE, -c CODE or a command"),
        (["--policy", "fair"], "no program to run"),
        (["-m"], "-m needs a module"),
        ([""], "the name of the program to run is empty"),
        (["missing.py"], "there is no file 'missing.py'"),
        (["missing-command"], "there is no command or file 'missing-command'"),
        (["./lost"], "cannot start './lost': no such file or directory"),
        (["./broken"], "cannot start './broken': exec format error"),
        (
            ["--policy", "fifo", "touch", "ran"],
            "--policy: 'fifo' is not a policy; the policies are stock, ",
        ),
        (
            ["--policy", "", "touch", "ran"],
            "--policy: '' is not a policy; the policies are stock, ",
        ),
        (["--policy"], "Option '--policy' requires an argument"),
        (["--quantum", "0", "touch", "ran"], "--quantum: '0' is not a number of milliseconds"),
        (["--quantum", "-1", "touch", "ran"], "--quantum: '-1' is not a number of milliseconds"),
        (["--quantum", "nan", "touch", "ran"], "--quantum: 'nan' is not a number of milliseconds"),
        (["--quantum", "1e9", "touch", "ran"], "--quantum: '1e9' is not a number of milliseconds"),
        (["--quantum", "5ms", "touch", "ran"], "--quantum: '5ms' is not a number of millisec"),
        (["--priority", "low", "touch", "ran"], "--priority: 'low' is not PATTERN=LEVEL with"),
        (["--priority", "=low", "touch", "ran"], "--priority: '=low' is not PATTERN=LEVEL with"),
        (["--priority", "x=top", "touch", "ran"], "--priority: 'x=top' is not PATTERN=LEVEL with"),
        (["--priority", "a\nb=low", "touch", "ran"], r"--priority: 'a\nb=low' is not PATTERN="),
        (
            ["--policy", "stock", "--priority", "a=low", "touch", "ran"],
            "--priority has no effect under CPython's own rules: add --policy priority",
        ),
        (["--polcy", "fair", "touch", "ran"], "No such option '--polcy'"),
        (["--no-children=1", "touch", "ran"], "Option '--no-children' does not take a value"),
        (["--green=1", "touch", "ran"], "Option '--green' does not take a value"),
    ],
)
def test_a_mistake_is_one_sentence(
    ungil: RunUngil, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    for name, text in (("lost", "#!/no/such/interpreter\n"), ("broken", "no program")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    outcome = ungil("run", *arguments)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    # What the program would be told about itself may come before.
    last = outcome.stderr.splitlines()[-1]
    assert last.startswith(f"ungil: {sentence}"), outcome.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [("UNGIL_POLICY", "fifo"), ("UNGIL_QUANTUM", "soon"), ("UNGIL_PRIORITY", "x=low\ny")],
)
@pytest.mark.parametrize("verb", ["run", "trace"])
def test_a_mistake_in_a_variable_is_one_sentence(
    ungil: RunUngil, environment: dict[str, str], tmp_path: Path, verb: str, name: str, value: str
) -> None:
    outcome = ungil(verb, "touch", "ran", env=environment | {name: value})
    assert outcome.returncode == 2
    last = outcome.stderr.splitlines()[-1]
    assert last.startswith(f"ungil: {name}: {value.splitlines()[-1]!r} is n")
    assert list(tmp_path.iterdir()) == []


def test_help_begins_with_what_to_type_and_names_every_policy(ungil: RunUngil) -> None:
    for option in ("-h", "--help"):
        outcome = ungil("run", option)
        assert outcome.returncode == 0
        assert outcome.stdout.startswith("  ungil run app.py")
        for policy in _native.POLICIES:
            assert f"\n  {policy} " in outcome.stdout


# ungil trace takes the same options.


def test_a_traced_program_obeys_a_policy_too(start: Start) -> None:
    for options, expected in (
        ([], ("stock", 5)),
        (["--policy", "fair", "--quantum", "3"], ("fair", 3)),
    ):
        obeying = Obeying(start, "trace", "--quiet", *options, sys.executable, str(OBEYING))
        assert obeying.policy() == expected


@pytest.mark.parametrize("python", RECORDED_ONLY, ids=str)
def test_tracing_under_a_policy_says_what_it_cannot_schedule(
    ungil: RunUngil, python: Python
) -> None:
    words = (python.path, "-c", "pass")
    outcome = ungil("trace", "--quiet", "--policy", "fair", *words)
    assert outcome.returncode == 0
    assert outcome.stderr.endswith("its GIL cannot be scheduled; it runs unscheduled\n")
    assert ungil("trace", "--quiet", *words).stderr == ""
