"""Makes an interpreter's threads green while it starts: the inside of `ungil run --green`.

`sitecustomize` imports it where UNGIL_GREEN is set, before the program's first import, in any
Python that gevent is installed for. gevent replaces what blocks in the standard library; here is
what a program of threads takes for granted and gevent alone would not give it:

* A signal handler that raises, raises in the main thread. Under gevent it would be in whichever
  thread was running, which would swallow Ctrl-C, or the SystemExit of a SIGTERM handler.
* Waiting for a signal alone is waiting. gevent raises LoopExit where no thread could ever wake
  another one; a clock that never stops makes it wait.

Where gevent is missing or incomplete, the program ends: a sentence and exit status 2.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import os
import signal
import sys
import threading

import ungil_green_pools


def _refuse(error):
    """End here: `site` drops what is raised, and the program would run with real threads."""
    sys.stderr.write(
        "ungil: --green needs gevent in the program's Python ({0}): "
        "{1} -m pip install gevent\n".format(error, sys.executable)
    )
    sys.stderr.flush()
    os._exit(2)


try:
    from gevent import get_hub, getcurrent, monkey
except ImportError as _error:
    _refuse(_error)

# A signal that comes while gevent is about to sleep is seen when it wakes up.
LONGEST_SLEEP_S = 1.0

# What lets daemon threads go on that a signal has taken the processor from.
_interrupted = set()
# A timer that nobody refers to may end.
_clocks = []


def begin(folder):
    """Make all threads green.

    `folder` is what this was found by: neither it nor UNGIL_GREEN is left to other programs, which
    so run as they would without ungil.
    """
    del os.environ["UNGIL_GREEN"]
    if not os.environ.get("UNGIL_PRIORITY"):
        _leave_path(folder)
    try:
        monkey.patch_all()
    except Exception as error:  # above all an ImportError: parts are imported only now
        _refuse(error)
    _end_with_daemons_that_compute()
    _fork_while_ending()
    _raise_in_the_main_thread()
    _always_wait()
    ungil_green_pools.warn()


def _leave_path(folder):
    others = [it for it in os.environ["PYTHONPATH"].split(os.pathsep) if it != folder]
    if others:
        os.environ["PYTHONPATH"] = os.pathsep.join(others)
    else:
        del os.environ["PYTHONPATH"]


class InMainThread(object):
    """A signal handler that raises in the main thread, whichever runs when the signal comes."""

    def __init__(self, handler, main):
        self.handler = handler
        self._main = main

    def __call__(self, number, frame):
        """Handle a signal."""
        try:
            return self.handler(number, frame)
        except BaseException:
            if getcurrent() is self._main:
                raise
            self._raise_there()

    def _raise_there(self):
        if getcurrent() is get_hub():  # all threads wait
            self._main.throw(*sys.exc_info())
            return
        goes_on = get_hub().loop.run_callback(getcurrent().switch)
        if threading.current_thread().daemon:
            _interrupted.add(goes_on)
        self._main.throw(*sys.exc_info())
        _interrupted.discard(goes_on)
        goes_on.stop()


def _raise_in_the_main_thread():
    main = getcurrent()
    set_handler, get_handler = signal.signal, signal.getsignal

    def told(handler):
        return handler.handler if isinstance(handler, InMainThread) else handler

    def set_in_main_thread(signalnum, handler):
        return told(
            set_handler(signalnum, InMainThread(handler, main) if callable(handler) else handler)
        )

    def get_told(signalnum):
        return told(get_handler(signalnum))

    signal.signal, signal.getsignal = set_in_main_thread, get_told
    interrupt = get_handler(signal.SIGINT)
    if callable(interrupt):  # else it is ignored, and stays so
        set_in_main_thread(signal.SIGINT, interrupt)


def _end_with_daemons_that_compute():
    """At the program's end gevent lets other threads run: one that computes would for ever."""
    shutdown = threading._shutdown

    def shutdown_without_them():
        for goes_on in _interrupted:
            goes_on.stop()
        shutdown()

    threading._shutdown = shutdown_without_them


def _fork_while_ending():
    """Without this, children that are started after the main thread's end write to stderr.

    From Python 3.13 on: what gevent 26.9 then puts in the place of that thread's handle lacks an
    argument that gevent itself passes after a fork.
    """

    def complete():
        main = threading.main_thread()
        handle = getattr(main, "_os_thread_handle", getattr(main, "_handle", None))
        if type(handle).__name__ == "FakeHandle":
            type(handle)._set_done = lambda self, enter_hub=True: None

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=complete)


def _always_wait():
    clock = get_hub().loop.timer(LONGEST_SLEEP_S, LONGEST_SLEEP_S)
    clock.start(int)
    _clocks.append(clock)
