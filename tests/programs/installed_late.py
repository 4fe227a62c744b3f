"""Puts the hook into a process whose threads already run and wait, and changes its policy often.

Usage: installed_late.py HOOK; runs on Python 3.7 and later. Prints the number of threads that
came to their end.
"""

import ctypes
import sys
import threading
import time

hook = ctypes.PyDLL(sys.argv[1])
hook.ungil_set_policy_v1.argtypes = [ctypes.c_uint32, ctypes.c_uint64]
POLICIES = [1, 2, 3, 4, 0]

# Nobody asks the holder, so a sleeping thread depends on being woken.
sys.setswitchinterval(1000)
turns = [0] * 4
over = False
at_work = threading.Semaphore(0)


def work(i):
    at_work.release()
    while not over:
        turns[i] += 1
        if turns[i] % 10000 == 0:
            time.sleep(0)


threads = [threading.Thread(target=work, args=(i,)) for i in range(len(turns))]
for thread in threads:
    thread.start()
for _ in threads:
    at_work.acquire()
# Keeps the GIL, so that the others are asleep in the kernel when the hook comes in.
ctypes.PyDLL(None).usleep(100000)
assert hook.ungil_level_v1() == -1
assert hook.ungil_install_v1() == 0
for policy in POLICIES * 10:
    assert hook.ungil_set_policy_v1(policy, 0) == 0
    before = list(turns)
    while any(turns[i] == before[i] for i in range(len(turns))):
        time.sleep(0)
over = True
for thread in threads:
    thread.join()
print(len(threads))
