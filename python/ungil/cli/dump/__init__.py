"""`ungil dump`: who holds the GIL of a running process now, and who waits for it."""
