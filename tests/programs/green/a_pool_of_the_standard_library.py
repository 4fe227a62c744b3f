"""A pool of the standard library."""

import time
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(10) as pool:
    print(list(pool.map(lambda n: (time.sleep(0.01), n)[1], range(30))))
    try:
        pool.submit(int, "x").result()
    except ValueError as error:
        print(error)
