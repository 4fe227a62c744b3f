"""Each thread has its own."""

import contextvars
import threading
import time

local, variable = threading.local(), contextvars.ContextVar("variable", default=0)


def work(number):
    assert not hasattr(local, "number")
    assert variable.get() == 0
    local.number = number
    variable.set(number)
    time.sleep(0.01)
    listed.wait()
    seen.append((local.number, variable.get(), threading.current_thread().name))


seen, listed = [], threading.Event()
threads = [threading.Thread(target=work, args=(n,), name=f"worker {n}") for n in range(3)]
[it.start() for it in threads]
print(sorted(it.name for it in threading.enumerate()))
listed.set()
[it.join() for it in threads]
print(sorted(seen), threading.active_count(), len({it.ident for it in threads}))
