"""What the site has besides docs/: a hook of mkdocs (mkdocs.yml, `make docs`).

* Documents that lie elsewhere (`ARCHITECTURE.md`), and programs that a page links to, are pages.
* Links are written for readers of the repository; here they lead to the pages.
* Whole pages (`lab.html`) have a folder of their own.
* A page that would look broken, or would ask another host for something, is a warning.
* The decisions are in the navigation without being listed, and have a page that lists them.
"""

from __future__ import annotations

import logging
import re
from os.path import relpath
from pathlib import Path
from typing import Any, cast

from links import links, replaced
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
DOCUMENTS = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "bench/RESULTS.md",
)
LOG = logging.getLogger("mkdocs.hooks.website")
ASKED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)=\"?(https?:[^\" >]+)")
CODE = re.compile(r"<code>[^<]*</code>")
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
WORKER = ROOT / "web/node_modules/iframe-worker/shim/index.js"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put what a pattern of the navigation finds into its place."""
    navigation = cast("list[Any]", config["nav"])
    config["nav"] = _expanded(navigation)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents and programs that lie outside of docs/, and the list of decisions."""
    for name in DOCUMENTS:
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for program in sorted(_programs()):
        name = program.relative_to(ROOT)
        source = program.read_text(encoding="utf-8")
        text = f"---\nsearch: {{exclude: true}}\n---\n# `{name}`\n\n```py\n{source}```\n"
        # It belongs to the page that links to it, and not into the navigation.
        file = File.generated(config, f"{name}.md", content=text)
        file.inclusion = file.inclusion.NOT_IN_NAV
        files.append(file)
    for whole in DOCS.glob("*.html"):
        # lab.md is to become lab.html.
        files.append(File.generated(config, _place(whole), abs_src_path=str(whole)))
    files.append(File.generated(config, "decisions/index.md", content=_decisions()))
    files.append(File.generated(config, "assets/iframe-worker.js", abs_src_path=str(WORKER)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make its links lead to pages of the site."""
    del config, files
    here = page.file.src_uri
    document = ROOT / here if here in DOCUMENTS else DOCS / here

    def on_site(target: str) -> str:
        path, sharp, anchor = target.partition("#")
        if not path:
            return target
        found = (document.parent / path).resolve()
        return relpath(_place(found), Path(here).parent) + sharp + anchor

    return replaced(markdown, on_site)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Warn of what GitHub takes for a table, a list or code, and Python's Markdown for text.

    An option in a sentence does not break after its hyphens.
    """
    del config, files
    text = re.sub(r"<pre.*?</pre>|<[^>]+>", "", html, flags=re.DOTALL)
    for line in re.findall(r"^(?:\| |```|[*-] |#+ ).*", text, re.MULTILINE):
        LOG.warning("%s: an empty line is missing before: %s", page.file.src_uri, line)
    return CODE.sub(lambda code: OPTION.sub(r'<span class="option">\g<0></span>', code[0]), html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Warn of what a browser would ask another host for."""
    del config
    for asked in ASKED.findall(output):
        LOG.warning("%s: the page loads %s", page.file.src_uri, asked)
    return output


def _place(path: Path) -> str:
    """Where a file of the repository is on the site."""
    if path == DOCS / "decisions":
        return "decisions/index.md"
    if path == ROOT / "README.md":
        return "index.md"
    if path.suffix == ".html":
        return f"pages/{path.name}"
    name = path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT)
    return f"{name}.md" if path.suffix == ".py" else str(name)


def _programs() -> set[Path]:
    """The programs that pages link to."""
    documents = [*DOCS.rglob("*.md"), *(ROOT / name for name in DOCUMENTS)]
    found = {
        link.path
        for document in documents
        for link in links(document.read_text(encoding="utf-8"), document)
    }
    return {path for path in found if path and path.suffix == ".py"}


def _decisions() -> str:
    """A list of all decisions, the newest first."""
    lines = ["# Decisions", "", "Each page gives the context, the decision, and what we lose.", ""]
    for file in sorted((DOCS / "decisions").glob("*.md"), reverse=True):
        title = file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"* [{title.replace('. ', ': ', 1)}]({file.name})")
    return "\n".join(lines) + "\n"


def _expanded(item: Any) -> Any:
    """An item of the navigation; in its lists patterns become what they find."""
    if isinstance(item, dict):
        titled = cast("dict[str, Any]", item)
        return {title: _expanded(below) for title, below in titled.items()}
    if isinstance(item, list):
        return [page for below in cast("list[Any]", item) for page in _found(below)]
    return item


def _found(item: Any) -> list[Any]:
    """What an item of a list stands for; of numbered pages the newest first."""
    if not (isinstance(item, str) and "*" in item):
        return [_expanded(item)]
    found = sorted(it.relative_to(DOCS) for it in DOCS.glob(item))
    is_numbered = all(it.name[0].isdigit() for it in found)
    return [str(it) for it in (reversed(found) if is_numbered else found)]
