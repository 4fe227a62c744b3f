"""As obeying.py, with a forked child."""

import os
import sys

import obeying

questions, answers = os.pipe(), os.pipe()
if os.fork() == 0:
    os.dup2(questions[0], 0), os.dup2(answers[1], 1)
    os.close(questions[1])
    obeying.answer()
    os._exit(0)
os.close(questions[0])
child = os.fdopen(answers[0])
pid = child.readline().strip()
print(os.getpid(), flush=True)
while sys.stdin.readline():
    os.write(questions[1], b"?\n")
    print(obeying.policy(), pid, child.readline().strip(), flush=True)
