"""The programs that fan out which are compared, by what they are compared in."""

from fanning import Case

# Names that targets speak of.
GOROUTINES = Case("Go, goroutines", "goroutines")
GORNIR = Case("gornir", "gornir", "logrus")
GORNIR_NULL = Case("gornir, no logger", "gornir", "null")
GATHER = Case("asyncio gather", "asyncio", "asyncio gather sleep")
UVLOOP_GATHER = Case("uvloop gather", "asyncio", "uvloop gather sleep")
SERIAL = Case("nornir serial, no-op", "nornir", "serial", rtt_s=0.0)
LEAN = "ungil lean"
LEAN_AUTO = Case("ungil lean, auto", "ungil", "lean")
ASYNCIO_STOCK, ASYNCIO = "ungil asyncio", "ungil asyncio, uvloop"
NORNIR_LEAN, NORNIR_ASYNCIO = "nornir ungil, async lean", "nornir ungil, async asyncio"
NORNIR_GREEN = "nornir ungil, green"
GREEN = "ungil green"
GEVENT = Case("gevent Pool", "gevent", "")  # its limit is the number of items
THREADED = "nornir threaded"
WORKERS = [100, 500, 1000, 2000, 10_000]


def _pools(items: int) -> list[Case]:
    """Peers with threads."""
    numbers = sorted({min(number, items) for number in (1000, 10_000)})
    workers = sorted({min(number, items) for number in WORKERS})
    return [
        *(Case(f"ThreadPoolExecutor {n}", "threads", "pool", n) for n in numbers),
        *(Case(f"{THREADED} {n}", "nornir", "threaded", n) for n in workers),
        Case(f"{THREADED} {items}, monkey", "nornir", "threaded-monkey", items),
    ]


def _nornir(items: int) -> list[Case]:
    """Our runner in nornir, with everything that talks and sleeps."""
    some = min(1000, items)
    return [
        Case(NORNIR_ASYNCIO, "nornir", "ungil-asyncio", items),
        Case(NORNIR_GREEN, "nornir", "ungil-green", items),
        Case(f"nornir ungil, threads {some}", "nornir", "ungil-threads", some),
        Case("nornir ungil, no options", "nornir", "ungil"),
    ]


def sleeping(items: int) -> list[Case]:
    """Those that only wait."""
    some = min(1000, items)
    return [
        GOROUTINES,
        GORNIR,
        GORNIR_NULL,
        GATHER,
        Case("asyncio TaskGroup+Semaphore", "asyncio", "asyncio group sleep", items),
        UVLOOP_GATHER,
        Case("uvloop TaskGroup+Semaphore", "asyncio", "uvloop group sleep", items),
        Case("aiometer", "aiometer", "run_all"),
        Case("trio", "trio", "nursery"),
        Case(GEVENT.name, "gevent", "pool", items),
        SERIAL,
        *_pools(items),
        Case(LEAN, "ungil", "lean", items),
        LEAN_AUTO,
        Case(ASYNCIO_STOCK, "ungil", "asyncio-stock", items),
        Case(ASYNCIO, "ungil", "asyncio", items),
        Case("ungil Fanout.stream", "ungil", "stream", items),
        Case(GREEN, "ungil", "green", items),
        Case(f"ungil threads {some}", "ungil", "threads", some),
        Case("ungil threads, auto", "ungil", "threads"),
        Case(NORNIR_LEAN, "nornir", "ungil-lean", items),
        *_nornir(items),
    ]


def talking(items: int) -> list[Case]:
    """Those that connect to fake devices."""
    some = min(1000, items)
    return [
        GOROUTINES,
        GORNIR,
        *(
            case
            for loop in ("asyncio", "uvloop")
            for case in (
                Case(f"{loop} streams", "asyncio", f"{loop} gather streams"),
                Case(f"{loop} streams {some}", "asyncio", f"{loop} group streams", some),
                Case(f"{loop} protocol", "asyncio", f"{loop} gather protocol"),
            )
        ),
        Case("aiometer", "aiometer", "run_all"),
        Case("trio", "trio", "nursery"),
        Case(GEVENT.name, "gevent", "pool", items),
        *_pools(items),
        Case(LEAN, "ungil", "lean", items),
        LEAN_AUTO,
        Case("ungil asyncio, uvloop, own", "ungil", "asyncio own", items),
        Case(ASYNCIO_STOCK, "ungil", "asyncio-stock", items),
        Case(ASYNCIO, "ungil", "asyncio", items),
        Case("ungil asyncio, uvloop, protocol", "ungil", "asyncio protocol", items),
        Case(GREEN, "ungil", "green", items),
        Case(f"ungil threads {some}", "ungil", "threads", some),
        *_nornir(items),
    ]


def warm(items: int) -> list[Case]:
    """Those that are looked at from inside of a process, and two whole ones to compare with."""
    some = min(1000, items)
    return [
        GORNIR,
        GOROUTINES,
        GATHER,
        Case("asyncio TaskGroup+Semaphore", "asyncio", "asyncio group sleep", items),
        UVLOOP_GATHER,
        Case(GEVENT.name, "gevent", "pool", items),
        Case(f"ThreadPoolExecutor {some}", "threads", "pool", some),
        Case(f"{THREADED} {some}", "nornir", "threaded", some),
        Case(LEAN, "ungil", "lean", items),
        Case(ASYNCIO_STOCK, "ungil", "asyncio-stock", items),
        Case(ASYNCIO, "ungil", "asyncio", items),
        Case("ungil Fanout.stream", "ungil", "stream", items),
        Case(GREEN, "ungil", "green", items),
        Case(f"ungil threads {some}", "ungil", "threads", some),
        Case(NORNIR_LEAN, "nornir", "ungil-lean", items),
        *_nornir(items),
    ]


def many(limit: int) -> list[Case]:
    """Those that are given more items than memory should show, `limit` at once."""
    return [
        Case("Go, goroutines", "goroutines", limit=limit),
        GATHER,
        Case("asyncio TaskGroup+Semaphore", "asyncio", "asyncio group sleep", limit),
        Case("gevent Pool.imap_unordered", "gevent", "stream", limit),
        Case("ThreadPoolExecutor", "threads", "pool", limit),
        Case(LEAN, "ungil", "lean", limit),
        Case(ASYNCIO, "ungil", "asyncio", limit),
        Case("ungil Fanout.stream", "ungil", "stream", limit),
        Case(GREEN, "ungil", "green", limit),
        Case("ungil threads", "ungil", "threads", limit),
    ]


def concurrent(items: int) -> list[Case]:
    """Those that can have very many at once: so many threads there are not."""
    return [
        GOROUTINES,
        GATHER,
        UVLOOP_GATHER,
        Case(GEVENT.name, "gevent", "pool", items),
        Case(LEAN, "ungil", "lean", items),
        Case(ASYNCIO, "ungil", "asyncio", items),
        Case("ungil Fanout.stream", "ungil", "stream", items),
        Case(GREEN, "ungil", "green", items),
    ]


def few(items: int) -> list[Case]:
    """What there is to gain with a handful of items: nothing. And what it is to start at all."""
    return [
        *(
            Case(f"only import {name or 'nothing'}", "nothing", name, rtt_s=0.0)
            for name in ("", "asyncio", "uvloop", "gevent", "nornir", "ungil.fanout")
        ),
        GOROUTINES,
        GATHER,
        Case("ThreadPoolExecutor", "threads", "pool", items),
        Case(GEVENT.name, "gevent", "pool", items),
        Case(LEAN, "ungil", "lean", items),
        LEAN_AUTO,
        Case(ASYNCIO, "ungil", "asyncio", items),
        Case("ungil threads", "ungil", "threads", items),
        SERIAL,
        Case(f"{THREADED} {items}", "nornir", "threaded", items),
        Case(NORNIR_LEAN, "nornir", "ungil-lean", items),
    ]
