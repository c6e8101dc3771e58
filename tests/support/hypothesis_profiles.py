"""Hypothesis profiles of the test suite, and numbers of examples that follow them."""

from __future__ import annotations

from hypothesis import settings


def register_profiles() -> None:
    """Register the profiles "whole", "quick", "many" and "long", and load "whole".

    `make test` runs "whole" and `make check` "quick". `make bench` runs "many" for every property, and "long" for
    random worlds (`examples`). None has a deadline: on a busy machine a slow example is not a failure.
    """
    settings.register_profile("whole", deadline=None, max_examples=40)
    settings.register_profile("quick", deadline=None, max_examples=20)
    settings.register_profile("many", deadline=None, max_examples=200)
    settings.register_profile("long", deadline=None, max_examples=1000)
    settings.load_profile("whole")


def examples(number: int) -> int:
    """Return *number* scaled to the loaded profile, which for a profile of 100 examples is *number*, and at least 2."""
    profile = settings.default
    assert profile is not None
    return max(number * profile.max_examples // 100, min(number, 2))
