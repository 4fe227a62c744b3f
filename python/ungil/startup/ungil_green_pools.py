"""Says on stderr what will hang on green threads: pools and queues of multiprocessing.

Both wait in the kernel, in `os.read` and in its semaphores, for what a thread of the same process
is to send. On green threads that thread gets no turn meanwhile, and nothing would tell why the
program stands still.
"""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportOptionalMemberAccess=false

import functools
import sys
import weakref

_said = set()


def _say(what):
    """Print one line about `what`, once."""
    if what in _said or sys.stderr is None:
        return
    _said.add(what)
    sys.stderr.write(
        "ungil: {0} on green threads: it waits in the kernel, and no other green thread can run "
        "until it returns; use concurrent.futures.ProcessPoolExecutor, or run the program without "
        "--green\n".format(what)
    )
    sys.stderr.flush()


def _watch_pools(module):
    begin = module.Pool.__init__

    @functools.wraps(begin)
    def begin_and_say(self, *args, **options):
        if not isinstance(self, module.ThreadPool):
            _say("a multiprocessing.Pool hangs")
        return begin(self, *args, **options)

    module.Pool.__init__ = begin_and_say


def _watch_queues(module):
    """What was put is sent when the program next waits elsewhere; until then, reading hangs."""
    put, get = module.Queue.put, module.Queue.get
    written = weakref.WeakSet()

    @functools.wraps(put)
    def put_and_note(self, *args, **options):
        written.add(self)
        return put(self, *args, **options)

    @functools.wraps(get)
    def say_and_get(self, block=True, timeout=None):
        if block and timeout is None and any(queue._buffer for queue in written):
            _say("reading a multiprocessing.Queue right after writing to one can hang")
        return get(self, block, timeout)

    module.Queue.put, module.Queue.get = put_and_note, say_and_get


class _Finder(object):
    """Finds nothing itself; changes the modules that it knows when they have been imported."""

    def __init__(self, watched):
        self._watched = watched

    def find_spec(self, name, path=None, target=None):
        """What Python 3 asks for."""
        watch = self._watched.pop(name, None)
        if watch is None:
            return None
        import importlib.util

        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_watch(module):
            execute(module)
            if module.__name__ == name:  # one loader may serve a whole archive
                watch(module)

        spec.loader.exec_module = execute_and_watch
        return spec

    def find_module(self, name, path=None):
        """What Python 2 asks for."""
        return self if name in self._watched else None

    def load_module(self, name):
        """Import a module that `find_module` found."""
        watch = self._watched.pop(name)
        __import__(name)
        watch(sys.modules[name])
        return sys.modules[name]


def warn():
    """From now on, a program that is about to hang says so."""
    sys.meta_path.insert(
        0,
        _Finder({"multiprocessing.pool": _watch_pools, "multiprocessing.queues": _watch_queues}),
    )
