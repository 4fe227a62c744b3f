"""A server of examples/ that runs, and what its metrics say."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from suite import PATIENCE_S

EXAMPLES = Path(__file__).parents[1] / "examples"
FRAMEWORKS = ["flask", "fastapi", "django"]


class Server:
    """One that listens."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str) -> tuple[str, Mapping[str, str]]:
        """The body of a page, and its headers."""
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as answer:
            return answer.read().decode(), answer.headers

    def samples(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """A scrape: name, labels and value of each sample, as prometheus_client reads them."""
        text, _ = self.get("/metrics")
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                yield sample.name, sample.labels, sample.value

    def value(self, name: str, **labels: str) -> float:
        """One sample of a scrape."""
        found = [value for it, its, value in self.samples() if it == name and its == labels]
        assert len(found) == 1, (name, labels, list(self.samples()))
        return found[0]


@contextmanager
def serving(framework: str) -> Generator[Server]:
    """An example, with every warning an error, until the end of the block."""
    words = [sys.executable, "-W", "error", str(EXAMPLES / f"metrics_{framework}.py")]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            url = running.stdout.readline().strip()
            assert url, running.communicate()[1]
            yield Server(url)
        finally:
            running.send_signal(signal.SIGTERM)
