"""What a process that measures tells the benchmark: when the measured time is, and the result.

Each is a line of JSON on standard output.
"""

import json


def say(what: dict[str, object]) -> None:
    """Print a line."""
    print(json.dumps(what), flush=True)


def begins() -> None:
    """The measured time begins now."""
    say({"now": "begins"})


def ends() -> None:
    """It ends now; what is under way is still waited for."""
    say({"now": "ends"})
