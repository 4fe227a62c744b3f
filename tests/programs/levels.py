"""All ways in which a thread comes by a name, and the level that it has then.

A line `NAME LEVEL` for each; the level is the hook's number, -1 if it is not installed. Runs on
Python 3.7 and later.
"""

import _thread
import concurrent.futures
import ctypes
import threading

level = ctypes.PyDLL(None).ungil_level_v1
heard = threading.Event()


def tell():
    print(threading.current_thread().name, level())


def rename_itself():
    tell()
    for name in ("worker-1", "other"):
        threading.current_thread().name = name
        tell()


def be_renamed():
    threading.current_thread().before = level()
    heard.wait()
    tell()


class Overriding(threading.Thread):
    def run(self):
        tell()


class Nameless(threading.Thread):
    @property
    def name(self):
        raise RuntimeError("it has no name")

    @name.setter
    def name(self, name):
        pass

    def run(self):
        print("(nameless)", level())


def run(thread):
    thread.start()
    thread.join()


tell()
run(threading.Thread(target=tell, name="worker-1"))
run(threading.Thread(target=tell, name="WORKER-1"))
run(threading.Thread(target=tell, name="a=b"))
run(Overriding(name="quick"))
run(Nameless(name="never asked"))
with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="worker") as pool:
    pool.submit(tell).result()
run(threading.Thread(target=rename_itself, name="quick"))

foreign = threading.Event()
_thread.start_new_thread(lambda: (tell(), foreign.set()), ())
foreign.wait()

renamed = threading.Thread(target=be_renamed, name="unnamed")
renamed.start()
renamed.name = "worker-1"
heard.set()
renamed.join()
tell()
