"""One thread collects garbage while another one computes."""

import gc
import threading

kept = [[number] for number in range(200_000)]
is_over = []


def compute():
    number = 0
    while not is_over:
        number += 1


computing = threading.Thread(target=compute, name="computing")
computing.start()
for _ in range(20):
    gc.collect()
is_over.append(True)
computing.join()
