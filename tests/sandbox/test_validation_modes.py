"""Both validation modes of the collector over HTTP (Wire 3.7, Strict validation)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

import pytest

from gamelens.sandbox.storage.inbox import newest
from support.candidate_events import good
from support.game_events import event
from support.sandbox_stage import Stage, event_counts

UNDOCUMENTED = {"platform": "toaster", "os_version": "toast 1", "sdk_version": "Mine", "own_field": {"kept": [1, None]}}


@pytest.fixture
def strict_stage(make_stage: Callable[..., Stage]) -> Stage:
    """Return a sandbox with strict validation."""
    return make_stage(validation="strict")


def test_lenient_mode_accepts_undocumented_values(stage: Stage) -> None:
    """By default, undocumented values and fields are accepted.

    Wire 3.3, Common fields; Wire 3.4, Platforms and versions.
    """
    assert stage.submit([event(**UNDOCUMENTED)]).status_code == 200


def test_strict_mode_rejects_undocumented_values_with_every_reason(strict_stage: Stage) -> None:
    """In strict mode each undocumented value and field has an error.

    Wire 3.7, Strict validation.
    """
    submitted = event(**UNDOCUMENTED)
    answer = strict_stage.submit([submitted])
    assert answer.status_code == 400
    assert answer.json() == [
        {
            "event": submitted,
            "errors": [
                {"error_type": "no_match", "path": "/sdk_version"},
                {"error_type": "no_match", "path": "/os_version"},
                {"error_type": "not_in_enum", "path": "/platform"},
                {"error_type": "no_extra_properties_allowed", "path": "/own_field"},
            ],
        }
    ]


def test_strict_mode_stores_the_good_events_of_a_batch(strict_stage: Stage) -> None:
    """In strict mode the good events of a batch with bad ones are stored.

    Wire 3.7, Strict validation.
    """
    assert strict_stage.submit([good("ads"), good("ads", ad_sdk_name="Unity Ads"), good("design")]).status_code == 400
    assert (event_counts(strict_stage)["accepted"], event_counts(strict_stage)["rejected"]) == (2, 1)


def test_strict_mode_accepts_documented_events(strict_stage: Stage) -> None:
    """Documented events of several categories get 200 in strict mode.

    Wire 3.7, Strict validation.
    """
    assert strict_stage.submit([good("progression"), good("health"), good("impression")]).status_code == 200


@pytest.mark.parametrize("others", [[], [{"category": "bad"}]], ids=["all good", "some bad"])
def test_unknown_fields_are_stored_with_their_event(stage: Stage, others: list[dict[str, str]]) -> None:
    """Unknown fields are on disk with their event, beside good events and bad ones.

    Wire 3.3, Common fields.
    """
    submitted = event(**UNDOCUMENTED, ios_idfa="0-1")
    stage.submit([submitted, *others])
    (batch,) = newest(stage.sandbox.store)
    assert json.loads(gzip.decompress(batch.body) if batch.is_gzipped else batch.body) == [submitted]
