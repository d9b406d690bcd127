"""Hypothesis without a limit of wall time: the machine that runs the tests may be busy."""

from hypothesis import settings

settings.register_profile("busy", deadline=None)
settings.load_profile("busy")
