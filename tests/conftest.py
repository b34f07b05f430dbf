"""For all tests: Hypothesis draws without a deadline, since the machines are small and noisy."""

from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")
