"""The tests. Hypothesis runs without a deadline: the first example may compile a kernel, and machines are shared."""

from hypothesis import settings

settings.register_profile("gainful", deadline=None, print_blob=True)
settings.load_profile("gainful")
