"""What the web servers of the gallery have in common: small requests beside some that compute."""

from gallery_runs import Measured, Place, free_port, load, observed, program

# Small requests a second.
RATE = 50
MEASURED = f"the time from a small request to its answer, {RATE} a second"
# What stands for the port in a command line.
PORT = "PORT"


def measure(
    place: Place,
    command: tuple[object, ...],
    computing: int,
    small: str = "/small",
    compute: str = "/compute",
    rate: float = RATE,
) -> Measured:
    """One run of a server, the words after `python`, with so many computing requests at once."""
    port = free_port()
    words = [str(word).replace(PORT, str(port)) for word in command]
    asked = ["--small", small, "--rate", rate, "--compute", compute, "--computing", computing]
    with (
        program(place, *words) as server,
        load(place, "http_requests", port, "--seconds", place.seconds, *asked) as client,
    ):
        return observed(place, server, client)
