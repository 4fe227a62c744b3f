"""`ungil heap`."""
