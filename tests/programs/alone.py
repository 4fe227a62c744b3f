"""Computes in its only thread; runs on Python 2.7 and later."""

print(sum(number * number for number in range(1000000)))
