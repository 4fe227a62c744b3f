"""An exception ends its thread alone."""

import threading

threading.Thread(target=int, args=("x",), name="Bad").start()
threading.Thread(target=exit, args=(3,)).start()
print("goes on")
