"""`ungil doctor` where something is limited or forbidden: what it says is true, and helps."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from suite import filtered

from ungil.cli import proc
from ungil.cli.doctor import limits_check, remedy
from ungil.cli.doctor import machine_checks as checks
from ungil.cli.doctor.check import Status
from ungil.cli.doctor.process_checks import check_attaching, check_heap, refused

Run = Callable[..., subprocess.CompletedProcess[str]]
WIDE = dict.fromkeys(limits_check.LIMITS, resource.RLIM_INFINITY)


def found(outcome: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """What the doctor says, by the names of its checks."""
    return {check["name"]: check for check in json.loads(outcome.stdout)["checks"]}


def doctor(
    environment: dict[str, str], limit: tuple[int, int] | None = None
) -> subprocess.CompletedProcess[str]:
    """The doctor on this interpreter, maybe under a limit."""
    return subprocess.run(
        [sys.executable, "-m", "ungil", "doctor", sys.executable, "--json"],
        env=environment,
        preexec_fn=limit and (lambda: resource.setrlimit(limit[0], (limit[1], limit[1]))),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_json_has_what_an_issue_needs(ungil: Run) -> None:
    said = json.loads(ungil("doctor", sys.executable, "--json").stdout)
    assert said["schema"] == 1
    assert said["python"] == sys.version
    assert said["kernel"] == os.uname().release
    assert said["machine"] == os.uname().machine
    assert said["user"] == os.geteuid()
    assert said["place"] in {*remedy.PLACES, None}
    assert all(check.keys() == {"status", "name", "text", "advice"} for check in said["checks"])


def test_every_check_is_described(ungil: Run) -> None:
    document = (Path(__file__).parent.parent / "docs/doctor.md").read_text(encoding="utf-8")
    outcome = ungil("doctor", sys.executable, "--json")
    undescribed = [name for name in found(outcome) if f"| `{name}` |" not in document]
    assert [name for name in undescribed if name != "LD_PRELOAD"] == []
    assert "| `/proc` |" in document


# What others preload.


@pytest.mark.parametrize("library", ["/no/such/library.so", __file__])
def test_a_library_of_others_that_is_broken_is_not_called_the_hook(
    environment: dict[str, str], library: str
) -> None:
    outcome = doctor({**environment, "LD_PRELOAD": library})
    assert outcome.returncode == 0
    assert found(outcome)["preload"]["status"] == "ok"
    assert found(outcome)["interpreter"]["status"] == "ok"
    assert found(outcome)["LD_PRELOAD"]["status"] == "warn"
    assert library in found(outcome)["LD_PRELOAD"]["text"]
    assert "take it out of LD_PRELOAD" in found(outcome)["LD_PRELOAD"]["advice"]


def test_a_hook_that_is_missing_fails_and_no_interpreter_is_tried(
    environment: dict[str, str], tmp_path: Path
) -> None:
    import ungil as package

    copy = tmp_path / "ungil"
    shutil.copytree(Path(package.__file__).parent, copy)
    (copy / "libungil_hook.so").unlink()
    outcome = doctor({**environment, "PYTHONPATH": str(tmp_path)})
    assert outcome.returncode == 1
    said = found(outcome)
    assert said["native part"]["text"] == f"the hook {copy}/libungil_hook.so is missing"
    assert said["native part"]["advice"] == "reinstall ungil"
    assert "interpreter" not in said


# Limits.


def test_files_that_may_have_no_length_are_told_as_a_limit(environment: dict[str, str]) -> None:
    outcome = doctor(environment, (resource.RLIMIT_FSIZE, 0))
    assert outcome.returncode == 1
    said = found(outcome)
    assert "RLIMIT_FSIZE" in said["temporary files"]["text"]
    helps = {remedy.FILE_SIZE.sentence(place) for place in (*remedy.PLACES, None)}
    for name in ("preload", "temporary files", "shared heap", "limits"):
        assert said[name]["advice"] in helps, name


def test_files_that_are_too_short_for_a_table_are_told_as_a_limit(
    environment: dict[str, str],
) -> None:
    outcome = doctor(environment, (resource.RLIMIT_FSIZE, 1 << 20))
    said = found(outcome)
    assert said["limits"]["text"].startswith("a file may have at most 1,048,576 bytes")
    assert said["interpreter"]["text"].endswith("or the hook found no room for its buffers")


def test_too_few_open_files_are_told_as_a_limit(environment: dict[str, str]) -> None:
    outcome = doctor(environment, (resource.RLIMIT_NOFILE, 12))
    assert found(outcome)["limits"]["status"] == "warn"
    helps = {remedy.FILES.sentence(place) for place in (*remedy.PLACES, None)}
    assert found(outcome)["limits"]["advice"] in helps


def test_few_addresses_are_told_as_a_limit(environment: dict[str, str]) -> None:
    outcome = doctor(environment, (resource.RLIMIT_AS, 1_500_000_000))
    helps = {remedy.ADDRESSES.sentence(place) for place in (*remedy.PLACES, None)}
    assert found(outcome)["limits"]["advice"] in helps
    assert found(outcome)["shared heap"]["advice"] in helps


def test_no_limit_is_no_problem() -> None:
    check = limits_check.judged(WIDE, [], None)
    assert (check.status, check.advice) == (Status.OK, "")


def test_each_limit_that_is_too_small_has_its_own_remedy() -> None:
    small = dict.fromkeys(limits_check.LIMITS, 1)
    check = limits_check.judged(small, [], "systemd")
    assert check.status is Status.WARN
    for words in ("LimitFSIZE=", "LimitNOFILE=", "LimitAS"):
        assert words in check.advice


def group(folder: Path, **files: str) -> None:
    """A control group with these files; a dot of a name is written as two underscores."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_limits_of_a_container_are_told_for_version_two(tmp_path: Path) -> None:
    group(tmp_path, cpu__max="50000 100000\n", memory__max="268435456\n")
    cpu, memory = limits_check.container_limits(tmp_path, "0::/\n")
    assert cpu.startswith("the CPU is limited to 0.5 processors")
    assert memory.startswith("memory is limited to 256 MiB")


def test_the_limits_of_a_container_are_told_for_version_one(tmp_path: Path) -> None:
    group(tmp_path / "cpu,cpuacct", cpu__cfs_quota_us="150000", cpu__cfs_period_us="100000")
    group(tmp_path / "memory", memory__limit_in_bytes="9223372036854771712")
    said = limits_check.container_limits(tmp_path, "4:memory:/\n1:cpu,cpuacct:/\n")
    assert said == [
        "the CPU is limited to 1.5 processors; reports say when the limit stopped a holder"
    ]


def test_the_strictest_group_around_a_process_counts(tmp_path: Path) -> None:
    group(tmp_path, cpu__max="max 100000")
    group(tmp_path / "a.slice", cpu__max="100000 100000")
    group(tmp_path / "a.slice/b.service", cpu__max="300000 100000")
    [said] = limits_check.container_limits(tmp_path, "0::/a.slice/b.service\n")
    assert said.startswith("the CPU is limited to 1 processors")


@pytest.mark.parametrize("text", ["", "x", "max", "1 0", "\xff", "-1 2 3"])
def test_a_control_group_that_says_nonsense_limits_nothing(tmp_path: Path, text: str) -> None:
    group(tmp_path, cpu__max=text, memory__max=text)
    assert limits_check.container_limits(tmp_path, "0::/../..\nnonsense\n") == []


# What may be traced and shared.


def test_a_process_that_is_no_child_is_attached_to_or_the_reason_is_told() -> None:
    check = check_attaching(None)
    assert check.status is Status.OK or check.advice


def test_a_filter_against_ptrace_has_the_remedy_of_the_place() -> None:
    problem = "it may not be traced: a seccomp filter forbids it; start it with standby"
    check = refused(problem, "kubernetes")
    assert check.text.startswith("it may not be traced: a seccomp filter forbids it: ")
    assert "securityContext.capabilities.add" in check.advice
    assert check.advice.endswith("or start the program with: ungil run --standby")


def test_yama_is_a_matter_of_the_host_in_a_container_too() -> None:
    problem = "it may not be traced: kernel.yama.ptrace_scope is 1; use sysctl or standby"
    assert refused(problem, "docker").advice == "use sysctl or standby"


def test_another_problem_than_a_ban_has_no_remedy_of_a_ban() -> None:
    assert refused("too many open files", "docker").advice == ""


def test_a_heap_can_be_made_here() -> None:
    assert check_heap(None).status is Status.OK


@pytest.mark.parametrize(
    ("scope", "words"), [("2", "sysctl kernel.yama.ptrace_scope=1"), ("3", "boot")]
)
def test_a_strict_yama_is_named_with_its_switch(
    monkeypatch: pytest.MonkeyPatch, scope: str, words: str
) -> None:
    def refuse(_pid: int, _address: int) -> OSError:
        return PermissionError(1, "Operation not permitted")

    def line(_path: str) -> str:
        return scope

    monkeypatch.setattr(checks, "_read_memory", refuse)
    monkeypatch.setattr(checks, "text_of", line)
    assert words in checks.check_memory_of_others().advice


def test_a_proc_of_another_namespace_is_told_as_that(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1/stat").touch()
    (tmp_path / "self").symlink_to("1")
    monkeypatch.setattr(proc, "PROC", tmp_path)
    monkeypatch.setattr(os, "getpid", lambda: 7)
    said = {check.name: check for check in checks.machine_checks()}
    assert said["/proc"].text.startswith("belongs to another PID namespace")
    assert said["/proc"].advice == proc.ADVICE
    assert not {"read a child", "attach"} & said.keys()


def test_the_process_that_was_attached_to_leaves_nothing_behind() -> None:
    def pages() -> set[str]:
        return {it.name for it in Path("/dev/shm").glob(f"ungil-policy-{os.geteuid()}-*")}

    def left_by_the_dead() -> set[str]:
        return {it for it in pages() if not Path(f"/proc/{it.rsplit('-')[-1]}").exists()}

    before = left_by_the_dead()
    assert check_attaching(None).status is Status.OK
    assert left_by_the_dead() <= before


# A seccomp filter, as systemd and container runtimes set one: what to do, and to which calls.


def doctor_filtered(
    environment: dict[str, str], outcome: str, *calls: str
) -> subprocess.CompletedProcess[str]:
    """The doctor where these system calls end so."""
    words = [*filtered(outcome, *calls), sys.executable, "-m", "ungil", "doctor", sys.executable]
    return subprocess.run(
        [*words, "--json"], env=environment, capture_output=True, text=True, check=False
    )


def all_of(fix: remedy.Remedy) -> set[str]:
    """What a remedy is in all places."""
    return {fix.sentence(place) for place in (*remedy.PLACES, None)}


def test_a_filter_that_refuses_to_read_costs_the_stacks_and_attaching(
    environment: dict[str, str],
) -> None:
    outcome = doctor_filtered(environment, "refused", "process_vm_readv", "ptrace")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    said = found(outcome)
    assert said["read a child"]["status"] == said["attach"]["status"] == "warn"
    assert said["read a child"]["advice"] in all_of(remedy.READING)
    assert said["interpreter"]["status"] == "ok"


def test_a_filter_that_kills_who_reads_costs_the_stacks(environment: dict[str, str]) -> None:
    outcome = doctor_filtered(environment, "killed", "process_vm_readv")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    said = found(outcome)
    assert said["read a child"]["status"] == "warn"
    assert said["read a child"]["text"].endswith("so long holds have no Python stacks")
    assert said["read a child"]["advice"] in all_of(remedy.READING)
    assert said["interpreter"]["status"] == "ok"


@pytest.mark.parametrize("end", ["refused", "killed"])
def test_a_filter_against_memory_files_costs_the_shared_heap_alone(
    environment: dict[str, str], end: str
) -> None:
    outcome = doctor_filtered(environment, end, "memfd_create")
    said = found(outcome)
    assert said["shared heap"]["status"] == "warn"
    assert said["shared heap"]["advice"] in all_of(remedy.SHARING)
    assert said["interpreter"]["status"] == "ok"


def test_where_nothing_can_be_started_each_check_says_so(environment: dict[str, str]) -> None:
    outcome = doctor(environment, (resource.RLIMIT_NOFILE, 7))
    assert (outcome.returncode, outcome.stderr) == (1, "")
    said = found(outcome)
    for name in ("preload", "read a child", "attach", "limits"):
        assert said[name]["advice"] in all_of(remedy.FILES), name


# Where it runs.


def test_what_surrounds_a_process_is_seen_by_its_marks(tmp_path: Path) -> None:
    assert remedy.surroundings(tmp_path, {}) is None
    started = {"INVOCATION_ID": "1"}
    assert remedy.surroundings(tmp_path, started) is None
    group = tmp_path / "proc/self/cgroup"
    group.parent.mkdir(parents=True)
    group.write_text("0::/user.slice/user-1000.slice/app.slice/vte-spawn-1.scope\n")
    assert remedy.surroundings(tmp_path, started) is None
    group.write_text("0::/system.slice/app.service\n")
    assert remedy.surroundings(tmp_path, started) == "systemd"
    (tmp_path / ".dockerenv").touch()
    assert remedy.surroundings(tmp_path, started) == "docker"
    (tmp_path / "run").mkdir()
    (tmp_path / "run/.containerenv").touch()
    assert remedy.surroundings(tmp_path, {}) == "podman"
    assert remedy.surroundings(tmp_path, {"KUBERNETES_SERVICE_HOST": "1"}) == "kubernetes"


def test_a_remedy_is_one_sentence_in_the_words_of_each_place() -> None:
    remedies = [it for it in vars(remedy).values() if isinstance(it, remedy.Remedy)]
    assert remedies
    for it in remedies:
        said = [it.sentence(place) for place in (*remedy.PLACES, None)]
        assert said[0].startswith("start the container with docker run --")
        assert said[1].startswith("start the container with podman run --")
        assert all(sentence and not sentence.endswith(".") for sentence in said)


# Interpreters.


def test_what_this_user_may_not_run_is_told_as_that(ungil: Run, tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o644)
    outcome = ungil("doctor", str(script))
    assert outcome.returncode == 2
    assert outcome.stderr == f"ungil: user {os.geteuid()} may not run {str(script)!r}\n"


def test_a_python_whose_wrapper_drops_the_hook_is_told_as_that(ungil: Run, tmp_path: Path) -> None:
    script = tmp_path / "wrapper"
    script.write_text(f'#!/bin/sh\nexec env -u LD_PRELOAD "{sys.executable}" "$@"\n')
    script.chmod(0o755)
    outcome = ungil("doctor", str(script), "--json")
    assert outcome.returncode == 1
    assert "it runs, but it did not load the hook" in found(outcome)["interpreter"]["text"]


def test_a_python_that_the_hook_does_not_fit_is_told_with_what_helps(
    ungil: Run, tmp_path: Path
) -> None:
    source, python = tmp_path / "python.c", tmp_path / "python"
    source.write_text(
        'const char *volatile text; int main() { text = "Fatal Python error"; return 0; }'
    )
    subprocess.run(["cc", str(source), "-o", str(python), "-static"], check=True)
    outcome = ungil("doctor", str(python), "--json")
    assert outcome.returncode == 1
    problem = f"{python} is statically linked, so no loader preloads the hook"
    assert found(outcome)["interpreter"]["text"] == problem
    helps = "use a dynamically linked one"
    assert found(outcome)["interpreter"]["advice"].startswith(helps)


def test_where_the_native_part_is_missing_the_doctor_still_says_so(
    environment: dict[str, str], tmp_path: Path
) -> None:
    import ungil as package

    shutil.copytree(
        Path(package.__file__).parent,
        tmp_path / "ungil",
        ignore=shutil.ignore_patterns("_native*.so"),
    )
    outcome = doctor({**environment, "PYTHONPATH": str(tmp_path)})
    assert outcome.returncode == 1
    assert found(outcome)["native part"]["status"] == "fail"
    assert "_native" in found(outcome)["native part"]["text"]
