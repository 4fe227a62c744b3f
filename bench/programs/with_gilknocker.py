"""Runs another program of this folder under gilknocker, which has no command of its own.

    python with_gilknocker.py PROGRAM [ARGS...]

gilknocker asks for the GIL from a thread in the process, by default for one millisecond in ten.
"""

import importlib
import runpy
import sys

if __name__ == "__main__":
    del sys.argv[0]
    # It has no types; the import is dynamic so that type checkers do not ask for them.
    knocker = importlib.import_module("gilknocker").KnockKnock()
    knocker.start()
    runpy.run_path(sys.argv[0], run_name="__main__")
    knocker.stop()
