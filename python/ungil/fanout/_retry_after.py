"""When a server wants to be asked again: `Retry-After` of the failures of HTTP libraries.

None of them is imported. httpx and requests have a response in their exceptions, with
`status_code`; aiohttp, urllib and the clients that are generated from OpenAPI have `status` or
`code`, and the headers beside it. RFC 9110, section 10.2.3: seconds or a date.
"""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Too many requests; service unavailable.
_STATUSES = (429, 503)
_NAMES = ("status_code", "status", "code")


def too_much(error: BaseException) -> float | None:
    """Whether a server has said with it that it is asked too much.

    Gives the seconds from now after which it wants to be asked again, 0 if it does not tell; None
    if it is no answer of that kind.
    """
    # A response can be false: that of requests is, for any failure.
    response: Any = getattr(error, "response", None)
    if response is None:
        response = error
    headers = getattr(response, "headers", None)
    # Only the first of them: aiohttp warns of its older ones.
    name = next((name for name in _NAMES if hasattr(response, name)), None)
    if headers is None or name is None or getattr(response, name) not in _STATUSES:
        return None
    try:
        return _seconds(headers.get("Retry-After") or headers.get("retry-after"))
    except (AttributeError, TypeError, ValueError, OverflowError):
        return 0.0


def _seconds(said: str | None) -> float:
    if not said:
        return 0.0
    if said.strip().isdecimal():
        return float(said)
    from email.utils import parsedate_to_datetime

    return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
