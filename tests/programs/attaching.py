"""Attaches to a process, and records it until it is killed: attaching.py PID [TRACE].

It writes a "!" just before. Without TRACE there is no file.
"""

import os
import sys

from ungil.recorder import new_recorder

recorder = new_recorder(sys.argv[2] if len(sys.argv) > 2 else None, overwrite=True)
os.write(1, b"!")
recorder.attach(int(sys.argv[1]))
sys.stdin.read()
