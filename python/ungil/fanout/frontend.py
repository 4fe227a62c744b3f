"""What a front end of fan-out is built with, as `ungil fanout` is.

| name                                   | what it is for                                         |
|----------------------------------------|--------------------------------------------------------|
| `failure`, `sentence`, `NamedFailure`  | in which way an item has failed, in few words          |
| `Plan`                                 | options of `fanout`, checked; `Outcomes` runs it       |
| `LARGEST`                              | the largest `limit`, `retries` and `per_group`         |
| `Journal`                              | a journal in which the front end names the function    |
| `Display`: `Bar`, `Calls`              | what shows the progress                                |
| `is_async`, `is_generator`             | which modes a function fits; one with a yield fits none |
| `engine_kind`                          | which kind of engine is named, before anything runs    |
"""

from ungil.fanout._failures import NamedFailure, failure, sentence
from ungil.fanout._journal import Journal
from ungil.fanout._mode import is_async, is_generator
from ungil.fanout._plan import LARGEST, Plan
from ungil.fanout._progress import Bar, Calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ungil.fanout._progress import Display

__all__ = [
    "LARGEST",
    "Bar",
    "Calls",
    "Display",
    "Journal",
    "NamedFailure",
    "Plan",
    "engine_kind",
    "failure",
    "is_async",
    "is_generator",
    "sentence",
]


def engine_kind(engine: object) -> str:
    """Which kind of engine the option `engine` names: "processes", "dask" or "ray".

    Raises ValueError if it names none.
    """
    # It imports asyncio, which a fan-out without an engine may do without.
    from ungil.fanout._engine import named

    return named(engine)[0]
