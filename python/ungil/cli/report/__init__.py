"""`ungil report`."""
