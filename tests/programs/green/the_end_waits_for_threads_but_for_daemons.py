"""The end waits for threads but for daemons."""

import atexit
import sys
import threading
import time

atexit.register(print, "at exit")
threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
threading.Thread(target=lambda: (time.sleep(0.05), print("last"))).start()
sys.exit(7)
