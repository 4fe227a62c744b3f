"""`ungil simulate`."""
