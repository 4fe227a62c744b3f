"""The heap's concurrent Rust tests under ThreadSanitizer (make tsan).

It needs a nightly toolchain. The standard library is not built with the sanitizer (that would
need its source), so its own synchronisation is not seen: fences of Arc, locks, the end of a scope.
A race counts if both accesses are code of the heap itself, neither of tests nor of the drop of an
Arc. All that processes share is atomic, which is no race whatever the order: models look at that.
"""

import os
import re
import subprocess
import sys

NEEDED = "make tsan needs a nightly toolchain of Rust (rustup toolchain install nightly)"
TESTS = [
    "allocator",
    "barriers",
    "conditions",
    "hold",
    "locks",
    "operations",
    "roots",
    "semaphores",
    "sync",
    "transaction",
]
TARGET = "x86_64-unknown-linux-gnu"
BUILD = ["cargo", "+nightly", "test", "--quiet", "--package=ungil-heap", "--features=fault"]
FLAGS = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
FRAME = re.compile(r"#\d+ (.*) (\S+?:\d+)")
# Where a stack of an access, and not one of a thread's beginning, starts in a report.
ACCESS = re.compile(
    r"^  (?:Previous )?(?:atomic )?(?:read|write) of size", re.IGNORECASE | re.MULTILINE
)


def has_nightly() -> bool:
    """Whether there is a nightly toolchain."""
    try:
        return not subprocess.run(
            ["cargo", "+nightly", "--version"], capture_output=True
        ).returncode
    except OSError:
        return False


def is_of_heap(access: str) -> bool:
    """Whether the heap itself made an access, as its stack says."""
    frames = FRAME.findall(access.split("\n\n")[0])
    own = [frame for frame in frames if "/rustc/" not in frame[1]]
    if not own or any(re.search(r"alloc::sync::(Arc|Weak)", name) for name, _ in frames):
        return False
    name, place = own[0]
    return "ungil-heap/src/" in place and "::tests::" not in name


def races(report: str) -> list[str]:
    """The races of a report that count."""
    found = report.split("WARNING: ThreadSanitizer: ")[1:]
    return [race for race in found if all(map(is_of_heap, ACCESS.split(race)[1:]))]


def main() -> int:
    """Runs the tests; 1 if one fails or a race is found."""
    if not has_nightly():
        print(NEEDED, file=sys.stderr)
        return 1
    chosen = ["--lib", *(f"--test={name}" for name in TESTS)]
    command = [*BUILD, f"--target={TARGET}", "--target-dir=target/tsan", "--no-fail-fast", *chosen]
    settings = {"RUSTFLAGS": FLAGS, "TSAN_OPTIONS": "exitcode=0", "RUST_TEST_THREADS": "1"}
    run = subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, errors="replace"
    )
    found = races(run.stdout + run.stderr)
    for race in found:
        print(race)
    if run.returncode:
        print(run.stdout[-4000:], run.stderr[-4000:], sep="\n", file=sys.stderr)
    seen = run.stderr.count("WARNING: ThreadSanitizer: ")
    others = seen - len(found)
    print(f"{len(found)} races in the heap; {others} reports are of the standard library")
    return 1 if found or run.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
