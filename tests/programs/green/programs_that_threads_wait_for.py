"""Programs that threads wait for."""

import subprocess
import sys
import threading

said = {}


def run(number):
    done = subprocess.run(["sh", "-c", f"cat; exit {number}"], input=b"in", capture_output=True)
    said[number] = (done.returncode, done.stdout)


threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
[it.start() for it in threads]
[it.join() for it in threads]
print(sorted(said.items()))
print(subprocess.check_output([sys.executable, "-c", "import sys; print('gevent' in sys.modules)"]))
