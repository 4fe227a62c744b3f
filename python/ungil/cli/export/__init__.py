"""`ungil export`."""
