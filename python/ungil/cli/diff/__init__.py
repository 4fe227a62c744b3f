"""`ungil diff`."""
