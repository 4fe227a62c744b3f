"""A forked child."""

import os
import time

child = os.fork()
if child == 0:
    time.sleep(0.01)
    os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
