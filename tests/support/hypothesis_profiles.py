"""Hypothesis profiles of the test suite, and numbers of tries that follow them."""

from __future__ import annotations

from hypothesis import settings

_IN_BENCH = 200  # examples of the profile "many"


def register_profiles() -> None:
    """Register the profiles "whole", "quick", "many" and "long", and load "whole".

    `make test` runs "whole" and `make check` "quick". `make bench` runs "many" for every property, and "long" for
    random worlds (`tries`). None has a deadline: on a busy machine a slow example is not a failure.
    """
    settings.register_profile("whole", deadline=None, max_examples=25)
    settings.register_profile("quick", deadline=None, max_examples=15)
    settings.register_profile("many", deadline=None, max_examples=200)
    settings.register_profile("long", deadline=None, max_examples=1000)
    settings.load_profile("whole")


def examples(number: int) -> int:
    """Return *number* scaled to the loaded profile, which for a profile of 100 examples is *number*, and at least 2."""
    profile = settings.default
    assert profile is not None
    return max(number * profile.max_examples // 100, min(number, 2))


def tries(*, in_test: int, in_bench: int) -> int:
    """Return how often something random is tried: *in_bench* in `make bench`, *in_test* otherwise.

    Random worlds, which cost seconds each, are few in `make test`.
    """
    profile = settings.default
    assert profile is not None
    return in_bench if profile.max_examples >= _IN_BENCH else in_test
