"""What runs while an interpreter starts, before the program."""
