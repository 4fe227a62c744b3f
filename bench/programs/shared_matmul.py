"""Runs examples/matmul.py once: `shared_matmul.py HOW WORKERS SIZE`."""

import sys
from pathlib import Path

import work

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))


def main() -> None:
    """Measures."""
    import matmul

    how, workers, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    work.say({"wall_s": matmul.timed(size, workers, how)})


if __name__ == "__main__":
    main()
