"""`ungil fanout`."""
