"""What README and the pages speak of: a reader's programs and traces, hosts and processes.

The pages say `app.py`, `before/`, `hosts.txt`, process 4711, 12:03:41. Here all of it is real: a
folder with such files, traces of her program, SSH servers on loopback, processes that run. Numbers
and times of these, which nobody can choose, stand for those on the page.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import reader
from documented import surroundings
from pythons import free_threaded
from ssh_hosts import USER, SshHosts
from suite import PATIENCE_S

HOSTS = [f"sw{number}" for number in range(1, 7)]

FILES = reader.FILES | {
    "hosts.txt": "".join(f"{host}\n" for host in HOSTS),
    "run.sh": "#!/bin/sh\nexec python app.py\n",
    "run-load.sh": "#!/bin/sh\nexec python app.py\n",
    "src/app.py": reader.FILES["app.py"],
    "tests/test_app.py": '''\
"""Tests of the application."""

from app import app


def test_it_answers():
    assert app({}, lambda *_: None)
''',
}

# Her traces, as the pages name them, each a copy of one of two runs.
TRACES = {
    "1": ("ungil-app", "app", "before", "before-1", "after-2", "before/1", "after/2", "main/1"),
    "2": ("after", "before-2", "after-1", "before/2", "after/1", "branch/1"),
}

# Her server.
SERVED = "served.sock"

# Hosts of the page about `ungil fanout` at which nobody listens.
REFUSING = "sw7 sw70 sw177"

# How she reaches her hosts: her ~/.ssh/config. OpenSSH takes no HOME from the environment.
SSH_CONFIG = """\
Host {refusing}
    Port {refuses}
Host *
    HostName 127.0.0.1
    Port {shell}
    User {user}
    IdentityFile {key}
    IdentitiesOnly yes
    UserKnownHostsFile {known_hosts}
    BatchMode yes
    LogLevel ERROR
"""

# What a command needs that no page tells her to do, by how it begins.
AHEAD = {
    "ungil fanout --hosts hosts.txt -- ssh {host} uptime -p": "seq -f sw%.0f 200 > hosts.txt",
    "ungil completion fish": "mkdir -p ~/.config/fish/completions",
}

# What is typed in another shell, by how it begins.
IN_ANOTHER_SHELL = {
    "source <(ungil completion zsh)": "zsh -fc 'autoload -U compinit && compinit -u && {}'",
}

# What process 4711 does on a page, and under what it runs: arguments of `looking.running`.
SERVICE = ("taking",)
SERVICES = {"live": ("hog",), "cli": ("taking", sys.executable, "run", "--")}

# Why a command is not typed, by how it begins.
LACKING = {
    "ungil export app.pftrace --format collapsed -o - | inferno-flamegraph": (
        "a program of Rust's registry; tests/test_cli_export.py reads collapsed stacks"
    ),
    "ungil lab --": "it measures for half an hour; tests/test_cli_lab.py has it small",
    "pip install": "it would replace the ungil that is tested; what it names is checked below",
    "git clone": "the suite of another project, a release of it",
    "make ": "what it builds is tested; that the target is there is checked below",
}
if not free_threaded():
    LACKING["ungil trace python3.13t"] = "there is no free-threaded Python here"

# The status of those that do not end with 0, by how they begin: her program breaks every limit.
ENDS = {"ungil check": 1}

# What needs a terminal, by how it begins; what is on the screen then; and the keys she presses.
ON_A_TERMINAL = {
    "ungil top 4711 --once": ("", b""),
    "ungil top": ("Quit", b"q"),
    "ungil fanout --hosts hosts.txt -- ssh {host} uptime -p": ("", b""),
}


def record(folder: Path) -> tuple[str, str]:
    """Make the folder with all that is in it; the clock as `ungil-app.pftrace` begins and ends."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".sh":
            path.chmod(0o755)
    for run in ("1", "2"):
        words = [sys.executable, "-m", "ungil", "trace", "-q", "-o", f"run-{run}.pftrace", "app.py"]
        subprocess.run(words, cwd=folder, check=True, timeout=PATIENCE_S)
    for run in ("1", "2"):
        for name in TRACES[run]:
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copy(folder / f"run-{run}.pftrace", folder / f"{name}.pftrace")
        (folder / f"run-{run}.pftrace").unlink()
    told = subprocess.run(
        [sys.executable, "-m", "ungil", "report", "--json", "ungil-app.pftrace"],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    report = json.loads(told.stdout)
    began = datetime.fromisoformat(report["started_at"]).astimezone()
    # Whole seconds, as on the page: the one in which it ended counts.
    ended = began + timedelta(seconds=report["duration_s"] + 1)
    return f"{began:%H:%M:%S}", f"{ended:%H:%M:%S}"


def environment(folder: Path, hosts: SshHosts) -> dict[str, str]:
    """Hers: her home with her SSH hosts, and a server that needs no port of the machine."""
    home = folder / "home"
    programs = home / "bin"
    programs.mkdir(parents=True)
    config = home / "ssh_config"
    config.write_text(
        SSH_CONFIG.format(
            refusing=REFUSING,
            refuses=hosts.ports["refuses"],
            shell=hosts.ports["shell"],
            user=USER,
            key=hosts.key,
            known_hosts=hosts.known_hosts,
        )
    )
    (programs / "ssh").write_text(f'#!/bin/sh\nexec "{shutil.which("ssh")}" -F {config} "$@"\n')
    (programs / "ssh").chmod(0o755)
    for python in free_threaded()[:1]:
        (programs / "python3.13t").symlink_to(python.path)
    (folder / "hosts.csv").write_text(
        "host,port\n" + "".join(f"{host},{hosts.ports['shell']}\n" for host in HOSTS[:3])
    )
    # Of her own Python alone; without pyenv's, `ungil lab` and `ungil doctor` have few to look at.
    kept = surroundings(Path(sys.executable))
    kept.pop("PYENV_ROOT", None)
    return kept | {
        "HOME": str(home),
        "PATH": f"{programs}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "GUNICORN_CMD_ARGS": f"--bind=unix:{folder / SERVED}",
    }


def ask(served: Path) -> None:
    """Ask her server for its page; OSError if it does not answer."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(str(served))
        asking.sendall(b"GET / HTTP/1.0\r\n\r\n")
        # To its end: a server complains of clients that leave earlier.
        if not b"".join(iter(lambda: asking.recv(4096), b"")).startswith(b"HTTP/1."):
            raise ConnectionError(f"{served} does not speak HTTP")
