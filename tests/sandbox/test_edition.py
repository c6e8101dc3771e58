"""Our choice: `/interval` says in a header which collection of events the answers are about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema

from conftest import Stage, event
from gamelens.sandbox.http.openapi import metrics_description
from sandbox.conftest import Call


def edition(stage: Stage, *, api_key: str = "key-of-acme") -> str:
    return stage.get("interval", api_key=api_key).headers["x-data-edition"]


def test_it_is_the_same_while_events_come_and_are_processed(stage: Stage) -> None:
    """Late events restate the past, and it is still the same collection."""
    editions = {edition(stage), edition(stage, api_key="key-of-rival")}
    for days in (0, 9):
        stage.submit([event(client_ts=event()["client_ts"] - days * 86_400)])
        stage.process()
        editions.add(edition(stage))
    assert len(editions) == 1


def test_it_is_what_the_description_says(stage: Stage) -> None:
    """OpenAPI 3.1, Header Object."""
    described = json.loads(metrics_description())["paths"]["/metrics/v1/interval"]["get"]["responses"]["200"]
    schema = described["headers"]["X-Data-Edition"]["schema"]
    jsonschema.Draft202012Validator(schema).validate(edition(stage))


def test_it_survives_a_restart(tmp_path: Path) -> None:
    found = set()
    for _ in range(2):
        stage = Stage(tmp_path / "state")
        found.add(edition(stage))
        stage.sandbox.close()
    assert len(found) == 1


def test_it_is_another_after_a_reset_and_stays_so(
    make_stage: Callable[..., Stage], console: Call, stage: Stage
) -> None:
    before = edition(stage)
    console("POST", "/reset")
    after = edition(stage)
    stage.sandbox.close()
    assert before != after == edition(make_stage())


def test_it_is_another_in_every_state_directory(tmp_path: Path) -> None:
    """A sandbox on the same port may be another one."""
    stages = [Stage(tmp_path / name) for name in ("one", "two")]
    found = {edition(stage) for stage in stages}
    for stage in stages:
        stage.sandbox.close()
    assert len(found) == 2


def test_a_store_that_was_mended_is_another(make_stage: Callable[..., Stage], stage: Stage) -> None:
    """Some of its events may be lost."""
    stage.submit([event()])
    before = edition(stage)
    stage.sandbox.close()
    (stage.sandbox.options.state / "gamelens.db").write_bytes(bytes(8192))
    assert edition(make_stage()) != before
