"""`ungil doctor`."""
