"""`ungil fanout` that is told to end when a command has begun, and nobody knows of it yet."""

import os
import signal
import subprocess
import sys
from pathlib import Path


class Popen(subprocess.Popen):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        Path("pid").write_text(str(self.pid))
        os.kill(os.getpid(), signal.SIGTERM)


subprocess.Popen = Popen

from ungil.cli import main  # noqa: E402

sys.exit(main(["fanout", "--hosts", "hosts", "--limit", "1", "--", "sleep", "1000{}"]))
