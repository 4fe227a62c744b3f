"""`ungil top`: what the threads of a running process do with its GIL, second by second."""
