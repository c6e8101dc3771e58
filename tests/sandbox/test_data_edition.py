"""The header `X-Data-Edition`, which identifies a collection of events."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema

from gamelens.sandbox.http.openapi import metrics_description
from gamelens.sandbox.server import rebuild_stopped
from support.app_requests import Call
from support.game_events import event
from support.sandbox_stage import Stage


def edition(stage: Stage, *, api_key: str = "key-of-acme") -> str:
    """Return the edition that the metrics service reports."""
    return stage.get("interval", api_key=api_key).headers["x-data-edition"]


def test_the_edition_stays_while_events_are_processed(stage: Stage) -> None:
    """Late events restate the past without a change of the edition.

    Wire 2.4, Available interval.
    """
    editions = {edition(stage), edition(stage, api_key="key-of-rival")}
    for days in (0, 9):
        stage.submit([event(client_ts=event()["client_ts"] - days * 86_400)])
        stage.process()
        editions.add(edition(stage))
    assert len(editions) == 1


def test_the_edition_matches_its_description(stage: Stage) -> None:
    """The value of the header satisfies its schema in the OpenAPI description.

    Wire 5.5, Service descriptions.
    """
    described = json.loads(metrics_description())["paths"]["/metrics/v1/interval"]["get"]["responses"]["200"]
    schema = described["headers"]["X-Data-Edition"]["schema"]
    jsonschema.Draft202012Validator(schema).validate(edition(stage))


def test_the_edition_stays_after_a_restart(tmp_path: Path) -> None:
    """A sandbox that is started again on its state has the same edition.

    Wire 2.4, Available interval.
    """
    editions = set()
    for _ in range(2):
        stage = Stage(tmp_path / "state")
        editions.add(edition(stage))
        stage.sandbox.close()
    assert len(editions) == 1


def test_a_reset_changes_the_edition(make_stage: Callable[..., Stage], control_api: Call, stage: Stage) -> None:
    """A reset changes the edition, and the new one stays after a restart.

    Wire 2.4, Available interval.
    """
    before = edition(stage)
    control_api("POST", "/reset")
    after = edition(stage)
    stage.sandbox.close()
    assert before != after == edition(make_stage())


def test_every_state_directory_has_its_own_edition(tmp_path: Path) -> None:
    """Two state directories have two editions, even on the same port.

    Wire 2.4, Available interval.
    """
    stages = [Stage(tmp_path / name) for name in ("one", "two")]
    editions = {edition(stage) for stage in stages}
    for stage in stages:
        stage.sandbox.close()
    assert len(editions) == 2


def test_an_accepted_loss_changes_the_edition(make_stage: Callable[..., Stage], stage: Stage) -> None:
    """The store in place of a damaged one has another edition, because events are missing.

    Wire 2.4, Available interval.
    """
    stage.submit([event()])
    before = edition(stage)
    stage.sandbox.close()
    (stage.sandbox.options.state / "gamelens.db").write_bytes(bytes(8192))
    rebuild_stopped(stage.sandbox.options.state, accept_loss=True)
    assert make_stage().sandbox.lake.edition != before
