"""Gets into a program that runs: attaching.py [--standby] FOLDER UNGIL PYTHON PROGRAM KIND.

Records it for a second, gives it a policy, and leaves it as it was; then asks it how it is.
Says as JSON what each step said, and stops at the first that fails.
"""

import json
import os
import subprocess
import sys


def steps(ungil, pid, folder):
    """The words of each step, by its name."""
    report = os.path.join(folder, "attached.json")
    trace = ["trace", "--pid", pid, "--for", "1s", "--quiet", "--force", "--json", report]
    return {
        "trace": [ungil, *trace, "-o", os.path.join(folder, "attached.pftrace")],
        "policy": [ungil, "policy", pid, "interactive", "--json"],
        "detach": [ungil, "policy", pid, "stock", "--detach", "--json"],
    }


def main():
    is_standby = sys.argv[1] == "--standby"
    folder, ungil, *words = sys.argv[1 + is_standby :]
    if is_standby:
        words = [ungil, "run", "--standby", *words]
    program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    said = {"ready": program.stdout.readline().strip()}
    for name, command in steps(ungil, str(program.pid), folder).items():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said[name] = {"status": done.returncode, "out": done.stdout, "err": done.stderr}
        if done.returncode:
            break
        if name == "trace":
            with open(os.path.join(folder, "attached.json"), encoding="utf-8") as file:
                said["report"] = json.load(file)
        if name == "policy":
            # In force while the program works on.
            shown = subprocess.run(
                [ungil, "policy", str(program.pid), "--json"], capture_output=True
            )
            said["in force"] = shown.stdout.decode()
    said["end"], _ = program.communicate()
    said["status"] = program.returncode
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
