"""Imports the modules that it is told to, and ends: what a process costs before it does anything.

It takes the arguments of fanout_work.py; WAY is names of modules with commas between, or empty.
"""

import sys


def main() -> None:
    """Imports."""
    for name in filter(None, sys.argv[1].split(",")):
        __import__(name)
    print(sys.argv[2], 0.0, 0.0)


if __name__ == "__main__":
    main()
