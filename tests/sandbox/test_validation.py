"""The collector's two modes over HTTP, and what of an event reaches the disk (public facts 2.3; gap 7)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable

import pytest

from conftest import Stage, event
from gamelens.sandbox.storage.inbox import newest
from sandbox.conftest import counted
from support.candidate_events import good

UNDOCUMENTED = {"platform": "toaster", "os_version": "toast 1", "sdk_version": "Mine", "own_field": {"kept": [1, None]}}


@pytest.fixture
def strict(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage(validation="strict")


def test_by_default_what_is_not_documented_is_accepted(stage: Stage) -> None:
    """Public facts 2.3 and 2.4: accept and keep."""
    assert stage.submit([event(**UNDOCUMENTED)]).status_code == 200


def test_strictly_it_is_refused_and_every_reason_told(strict: Stage) -> None:
    """Public facts 2.4, Advice; contract, Collector: every error listed."""
    sent = event(**UNDOCUMENTED)
    answer = strict.submit([sent])
    assert answer.status_code == 400
    assert answer.json() == [
        {
            "event": sent,
            "errors": [
                {"error_type": "no_match", "path": "/sdk_version"},
                {"error_type": "no_match", "path": "/os_version"},
                {"error_type": "not_in_enum", "path": "/platform"},
                {"error_type": "no_extra_properties_allowed", "path": "/own_field"},
            ],
        }
    ]


def test_strictly_the_good_events_of_a_batch_are_collected(strict: Stage) -> None:
    """contract, Collector."""
    assert strict.submit([good("ads"), good("ads", ad_sdk_name="Unity Ads"), good("design")]).status_code == 400
    assert (counted(strict)["accepted"], counted(strict)["rejected"]) == (2, 1)


def test_strictly_what_is_documented_is_accepted(strict: Stage) -> None:
    assert strict.submit([good("progression"), good("health"), good("impression")]).status_code == 200


@pytest.mark.parametrize("beside", [[], [{"category": "bad"}]], ids=["all good", "some bad"])
def test_fields_nobody_knows_are_on_disk_with_their_event(stage: Stage, beside: list[dict[str, str]]) -> None:
    """Public facts 2.3: accept and keep them."""
    sent = event(**UNDOCUMENTED, ios_idfa="0-1")
    stage.submit([sent, *beside])
    (batch,) = newest(stage.sandbox.store)
    assert json.loads(gzip.decompress(batch.body) if batch.is_gzipped else batch.body) == [sent]
