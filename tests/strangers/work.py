"""What is asked of the strangers' servers, and what is right: a sum, with junk beside it."""


def answer(number):
    """The sum of the numbers below `number`; other objects come and go meanwhile."""
    junk = [str(it) * 3 for it in range(number % 500)]
    return sum(range(number)) + len(junk) - number % 500
