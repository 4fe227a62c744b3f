"""What `ungil dump` and `ungil top` have in common: running processes, looked at as they run."""
