"""A process of the tests that is killed leaves no program running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from left_behind import VARIABLE
from process_groups import wait_until_gone

TESTS = r"""
import os, subprocess, sys
from left_behind import watch
watch()
# In one write: with PYTHONUNBUFFERED, print makes two, and the programs share a pipe.
code = "import os, signal; os.write(1, b'%d\\n' % os.getpid()); signal.pause()"
program = [sys.executable, "-c", code]
one = subprocess.Popen(program)
daemon = subprocess.Popen(program, start_new_session=True)
one.wait()
"""


def test_a_program_and_a_daemon_end_with_the_tests_that_are_killed() -> None:
    environment = {name: it for name, it in os.environ.items() if name != VARIABLE}
    with subprocess.Popen(
        [sys.executable, "-c", TESTS],
        cwd=Path(__file__).parent,
        env=environment,
        stdout=subprocess.PIPE,
    ) as tests:
        assert tests.stdout is not None
        programs = [int(tests.stdout.readline()) for _ in range(2)]
        tests.send_signal(signal.SIGKILL)
        tests.wait()
        for program in programs:
            wait_until_gone(program)
