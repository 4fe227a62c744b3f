"""`ungil trace`."""
