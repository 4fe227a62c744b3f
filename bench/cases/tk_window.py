"""A Tk window under Xvfb: how late a timer of 10 ms is. The window measures itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from subprocess import DEVNULL, PIPE, Popen

from gallery_runs import PROGRAMS, Case, Measured, Place, observed, program
from sampling import Failed


@contextmanager
def _display() -> Iterator[str]:
    """The name of an X server's display, which nobody looks at."""
    words = ["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"]
    try:
        server = Popen(words, stdout=PIPE, stderr=DEVNULL, text=True)
    except FileNotFoundError:
        raise Failed("there is no Xvfb: apt-get install xvfb") from None
    with server:
        assert server.stdout is not None
        number = server.stdout.readline().strip()
        if not number:
            raise Failed("Xvfb did not start")
        try:
            yield f":{number}"
        finally:
            server.terminate()


def _measure(place: Place, setting: str) -> Measured:
    words = (PROGRAMS / "tk_window.py", setting.split()[0], place.seconds)
    with _display() as display, program(place, *words, DISPLAY=display) as window:
        return observed(place, window, window)


CASE = Case(
    name="tk",
    title="Tk: a window whose clock moves every 10 ms",
    packages=(),
    measured="how late `after(10, ...)` is, by the window's own clock",
    settings=("1 computing thread", "4 computing threads"),
    measure=_measure,
)
