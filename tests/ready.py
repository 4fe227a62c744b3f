"""`make ready`: whether a release is described everywhere as the version that it is.

The version is that of Cargo.toml; CITATION.cff and the newest heading of CHANGELOG.md have to have
it too, and so has the tag, if one is given.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = {
    "Cargo.toml": r'^version = "(.+)"$',
    "CITATION.cff": r"^version: (\S+)$",
    # A released version has its date.
    "CHANGELOG.md": r"^## (\d\S*) - \d{4}-\d{2}-\d{2}$",
}


def problems(texts: Mapping[str, str], tag: str) -> list[str]:
    """What keeps a version from being released; each is a sentence without a final dot."""
    told = {name: re.search(pattern, texts[name], re.MULTILINE) for name, pattern in PLACES.items()}
    versions = {name: found[1] if found else None for name, found in told.items()}
    version = versions["Cargo.toml"]
    wrong = [
        f"{name} has {'no version' if other is None else other}, and Cargo.toml has {version}"
        for name, other in versions.items()
        if other != version
    ]
    if tag and tag != f"v{version}":
        wrong.append(f"the tag is {tag}, and Cargo.toml has {version}; it has to be v{version}")
    return wrong


def main(tag: str) -> int:
    """Print what is wrong with this repository; 1 if anything is."""
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in PLACES}
    wrong = problems(texts, tag)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main("".join(sys.argv[1:2])))
