"""`ungil run`."""
