"""What a public project has besides its code: workflows, issue forms, hooks, a citation."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from ready import PLACES, problems

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def targets() -> set[str]:
    """Everything that can be made by name."""
    return set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_nothing_that_a_developer_cannot_run(workflow: Path) -> None:
    commands = re.findall(r"\brun: *(.*)", workflow.read_text(encoding="utf-8"))
    strange = [
        it for it in commands if it != ".ci/run" and it not in {f"make {t}" for t in targets()}
    ]
    assert not strange


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_an_action_is_pinned_by_its_commit_and_names_its_version(workflow: Path) -> None:
    used = re.findall(r"\buses: *(.*)", workflow.read_text(encoding="utf-8"))
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert not [it for it in used if not it.startswith("./") and not pinned.fullmatch(it)]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_nothing_but_what_a_job_of_it_asks_for(workflow: Path) -> None:
    text = workflow.read_text(encoding="utf-8")
    assert "\npermissions: {}\n" in text
    assert set(re.findall(r"^ +([\w-]+): write", text, re.MULTILINE)) <= {"id-token"}


def test_a_hook_before_a_commit_runs_a_target_or_a_tool_of_make_lint() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"entry: (.*)", text)
    recipes = MAKEFILE.replace("$(BIN)", ".venv/bin")
    assert entries
    for entry in entries:
        tool = " ".join(entry.split()[:2])
        assert entry.removeprefix("make ") in targets() or tool in recipes, entry


def test_issue_forms_ask_for_what_the_doctor_says() -> None:
    forms = [it for it in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml") if it.stem != "config"]
    assert forms
    for form in forms:
        assert "ungil doctor --json" in form.read_text(encoding="utf-8")


DESCRIBED = {
    "Cargo.toml": '[workspace.package]\nversion = "1.2.3"\n',
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.3\n",
    "CHANGELOG.md": "## Unreleased\n\n## 1.2.3 - 2026-11-25\n\n## 1.2.2 - 2026-01-01\n",
}


def test_a_version_that_is_told_alike_everywhere_is_ready() -> None:
    assert problems(DESCRIBED, "") == problems(DESCRIBED, "v1.2.3") == []


@pytest.mark.parametrize("name", PLACES)
def test_a_file_that_tells_another_version_is_named(name: str) -> None:
    others = DESCRIBED | {name: DESCRIBED[name].replace("1.2.3", "1.2.4")}
    assert any(name in problem for problem in problems(others, ""))


def test_a_changelog_without_the_version_is_not_ready() -> None:
    texts = DESCRIBED | {"CHANGELOG.md": "## Unreleased\n"}
    assert problems(texts, "") == ["CHANGELOG.md has no version, and Cargo.toml has 1.2.3"]


def test_a_tag_of_another_version_is_not_ready() -> None:
    [problem] = problems(DESCRIBED, "1.2.3")
    assert problem == "the tag is 1.2.3, and Cargo.toml has 1.2.3; it has to be v1.2.3"


def test_the_citation_is_of_the_version_that_is_built() -> None:
    told = {name: (ROOT / name).read_text(encoding="utf-8") for name in PLACES}
    assert not [it for it in problems(told, "") if it.startswith("CITATION.cff")]


def test_make_ready_says_it_with_its_status() -> None:
    outcome = subprocess.run(
        ["make", "--silent", "ready", "TAG=v0"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 2
    assert "the tag is v0" in outcome.stdout
