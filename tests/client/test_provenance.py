"""The provenance of a frame: real service, sandbox with its scenario, or replay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree

import httpx
import pytest
from starlette.routing import Mount

import gamelens as gl
import gamelens.notebook.accessor
from gamelens.client.connection.control_api import ControlApi
from gamelens.client.connection.settings import Secret
from gamelens.client.connection.transport import Transport
from gamelens.client.sync_client import Client
from gamelens.errors import BadQuery
from gamelens.receipts import Provenance, Receipt, merge_receipts
from gamelens.sandbox.control.control_app import control_app
from support.game_events import NOW, event
from support.sandbox_stage import Stage
from support.scripted_service import KEY, Script

DAY = "2026-11-20/P1D"
NOW_MS = int(NOW.timestamp() * 1000)
URL = "http://127.0.0.1:1"
SCENARIO = "Nürnberg & Söhne, 100 %"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the state directory of a sandbox with one processed event, to be copied."""
    folder = tmp_path_factory.mktemp("event") / "state"
    stage = Stage(folder)
    stage.submit([event()])
    stage.process()
    stage.sandbox.close()
    return folder


@pytest.fixture
def stage(state: Path, tmp_path: Path) -> Iterator[Stage]:
    """Return a sandbox with one processed event."""
    stage = Stage(copytree(state, tmp_path / "state"))
    yield stage
    stage.sandbox.close()


def control_api(stage: Stage) -> ControlApi:
    """Return the control API of *stage*."""
    return ControlApi(f"{URL}/token", pool=httpx.ASGITransport(control_app(stage.sandbox, token="token")))


def client_of(stage: Stage, record: Path | None = None) -> Client:
    """Return a client of the metrics service of *stage*."""
    pool = httpx.ASGITransport(stage.metrics_app)
    return Client(api_key="key-of-acme", metrics_url=URL, transport=pool, record=record, cache=False, progress=False)


def receipt_of(lens: Client) -> Receipt:
    """Return the receipt of a query of the last day."""
    with lens:
        return Receipt.of(lens.query("event_count", over=DAY, when_unavailable="clip").attrs)


def test_events_dated_by_arrival_are_counted_in_the_receipt(stage: Stage, tmp_path: Path) -> None:
    """A receipt has their numbers by reason, of a sandbox, a replay and a lake, and says so in words.

    Wire 2.4, Available interval; Wire 4.1, Event time.
    """
    assert "dated_by_arrival" not in receipt_of(client_of(stage)).to_json()
    stage.submit([event(client_ts=0), event(client_ts=NOW_MS), event(client_ts=NOW_MS + 1)])
    stage.process()
    counts = {"client_ts in milliseconds": 2, "client_ts more than 365 days before arrival": 1}
    with client_of(stage, tmp_path / "recorded") as lens:
        frame = lens.query("event_count", over=DAY, when_unavailable="clip")
    assert frame.attrs["gamelens"]["dated_by_arrival"] == counts
    said = "Dated by arrival, of all events that were received: 3, 2 with client_ts in milliseconds and 1 with"
    assert said in frame.lens.explain()
    with Client(replay=tmp_path / "recorded", progress=False) as lens:
        assert receipt_of(lens).dated_by_arrival == counts
    with gl.open_lake(stage.sandbox.options.state, organisation="acme") as lake:
        assert Receipt.of(lake.query("event_count", over="today").attrs).dated_by_arrival == counts
    merged = merge_receipts([Receipt.of(frame.attrs), Receipt.of(frame.attrs)])
    assert merged.dated_by_arrival == counts


def test_a_service_without_an_edition_is_real(make_lens: Callable[..., Client], script: Script) -> None:
    """A service that names no edition is taken for the real one."""
    script.answers["event_count"] = lambda _: []
    frame = make_lens(metrics_url=URL).query("event_count", over="2026-11-01/P1D")
    assert Receipt.of(frame.attrs).provenance == Provenance(kind="real", url=URL)


def test_the_address_is_without_the_key() -> None:
    """A key that stands in the address is not in the provenance."""
    transport = Transport(f"{URL}/{KEY}/metrics", key=Secret(KEY))
    assert transport.provenance == Provenance(kind="real", url=f"{URL}/…/metrics")


def test_a_sandbox_is_known_by_its_edition(stage: Stage) -> None:
    """A sandbox without a scenario is a sandbox."""
    assert receipt_of(client_of(stage)).provenance == Provenance(kind="sandbox", url=URL)


@pytest.mark.wide
def test_a_sandbox_on_another_port_finds_its_answers_in_the_cache(stage: Stage, tmp_path: Path) -> None:
    """The edition of the data tells sandboxes of one machine apart, not the port, which is any free one."""

    def cached_share(port: int) -> float:
        pool, url = httpx.ASGITransport(stage.metrics_app), f"http://127.0.0.1:{port}"
        with Client(api_key="key-of-acme", metrics_url=url, transport=pool, cache=tmp_path / "cache") as lens:
            receipt = Receipt.of(lens.query("event_count", over=DAY, when_unavailable="clip").attrs)
        return receipt.cached_share

    assert [cached_share(1), cached_share(2)] == [0, 1]
    asyncio.run(control_api(stage).reset())
    stage.submit([event()])
    stage.process()
    assert cached_share(2) == 0


def test_services_without_an_edition_share_no_answers(
    make_lens: Callable[..., Client], script: Script, tmp_path: Path
) -> None:
    """Two ports of this machine are two services if neither names an edition."""
    script.answers["event_count"] = lambda _: []
    for port in (1, 2, 2):
        lens = make_lens(metrics_url=f"http://127.0.0.1:{port}", cache=tmp_path / "cache")
        lens.query("event_count", over="2026-11-01/P1D")
    assert len(script.bodies) == 2


def test_the_scenario_is_in_the_receipt(stage: Stage) -> None:
    """The scenario set by the control API is in the receipt, whatever letters it has (Wire 5.1, Control API)."""
    asyncio.run(control_api(stage).set_scenario(SCENARIO))
    assert receipt_of(client_of(stage)).provenance == Provenance(kind="sandbox", url=URL, scenario=SCENARIO)


def test_a_reset_forgets_the_scenario(stage: Stage) -> None:
    """`POST /reset` and a scenario of null clear the scenario."""
    asyncio.run(control_api(stage).set_scenario("demo"))
    asyncio.run(control_api(stage).reset())
    assert "x-sandbox-scenario" not in stage.get("interval").headers
    asyncio.run(control_api(stage).set_scenario("demo"))
    assert stage.get("interval").headers["x-sandbox-scenario"] == "demo"
    asyncio.run(control_api(stage).set_scenario(None))
    assert "x-sandbox-scenario" not in stage.get("interval").headers


def test_the_scenario_survives_a_restart(tmp_path: Path) -> None:
    """The scenario is kept in the state directory."""
    for name in ("demo", None):
        stage = Stage(tmp_path / "state")
        if name:
            stage.sandbox.set_scenario(name)
        assert stage.sandbox.lake.scenario == "demo"
        stage.sandbox.close()


@pytest.mark.parametrize("name", ["", " ", "a" * 201, "two\nlines"])
def test_a_scenario_has_a_printable_name(stage: Stage, name: str) -> None:
    """A name that is empty, too long or not printable is refused and changes nothing."""
    asyncio.run(control_api(stage).set_scenario("demo"))
    with pytest.raises(BadQuery, match="up to 200 characters"):
        asyncio.run(control_api(stage).set_scenario(name))
    assert stage.sandbox.lake.scenario == "demo"


def test_a_replay_knows_the_folder_and_the_scenario(stage: Stage, tmp_path: Path) -> None:
    """The recorded answer has the headers of the sandbox, so a replay of it names the scenario."""
    stage.sandbox.set_scenario(SCENARIO)
    folder = tmp_path / "answers of november"
    assert receipt_of(client_of(stage, record=folder)).provenance.kind == "sandbox"
    (recorded,) = [json.loads(path.read_text()) for path in folder.glob("interval-*.json")]
    assert set(recorded["answer"]["headers"]) == {"x-data-edition", "x-sandbox-scenario"}
    replayed = receipt_of(Client(replay=folder, progress=False)).provenance
    sandbox = Provenance(kind="sandbox", url=URL, scenario=SCENARIO)
    assert replayed == Provenance(kind="replay", url=folder.name, scenario=SCENARIO, sources=(sandbox,))


def test_a_replay_knows_the_service_that_was_recorded(
    make_lens: Callable[..., Client], script: Script, tmp_path: Path
) -> None:
    """Every recorded file names the address, without the key; a replay of a real service says which."""
    script.answers["event_count"] = lambda _: []
    folder, address = tmp_path / "q3", f"{URL}/{KEY}/of"
    receipt_of(make_lens(Mount(f"/{KEY}/of", script.app()), metrics_url=address, record=folder))
    texts = [path.read_text() for path in folder.iterdir()]
    assert {json.loads(text)["service"] for text in texts} == {f"{URL}/…/of"}
    assert not [text for text in texts if KEY in text]
    real = Provenance(kind="real", url=f"{URL}/…/of")
    assert receipt_of(Client(replay=folder, progress=False)).provenance == Provenance(
        kind="replay", url="q3", sources=(real,)
    )


def test_a_folder_holds_the_answers_of_one_source(
    stage: Stage, make_lens: Callable[..., Client], script: Script, tmp_path: Path
) -> None:
    """Recording a real service into the folder of a sandbox is refused, and leaves the folder as it is."""
    script.answers["event_count"] = lambda _: []
    receipt_of(client_of(stage, record=tmp_path / "both"))
    with pytest.raises(BadQuery, match=r"holds answers of sandbox, but 127\.0\.0\.1:1 is answering now"):
        receipt_of(make_lens(metrics_url=URL, record=tmp_path / "both"))
    assert receipt_of(Client(replay=tmp_path / "both", progress=False)).provenance.is_simulated
    receipt_of(client_of(stage, record=tmp_path / "both"))


def test_a_refresh_from_another_source_warns(stage: Stage, make_lens: Callable[..., Client], script: Script) -> None:
    """The numbers of a real service, refreshed from a sandbox, are those of the sandbox."""
    script.answers["event_count"] = lambda _: []
    frame = make_lens(metrics_url=URL).query("event_count", over="2026-11-20T00:00Z/PT9H")
    with client_of(stage) as lens, pytest.warns(UserWarning, match="numbers of different sources"):
        refreshed = lens.refresh(frame)
    assert refreshed.lens.receipt.provenance == Provenance(kind="sandbox", url=URL)


def test_a_recording_without_headers_is_a_replay(stage: Stage, tmp_path: Path) -> None:
    """Answers recorded before files said who answered are a replay of their folder."""
    receipt_of(client_of(stage, record=tmp_path / "old"))
    for path in (tmp_path / "old").glob("*.json"):
        recorded = json.loads(path.read_text())
        recorded["answer"].pop("headers", None)
        del recorded["service"]
        path.write_text(json.dumps(recorded))
    assert receipt_of(Client(replay=tmp_path / "old", progress=False)).provenance == Provenance(
        kind="replay", url="old"
    )


def test_frames_of_a_query_say_it_in_words(stage: Stage) -> None:
    """`df.lens.receipt` is the struct, and `explain()` names the sandbox and the scenario."""
    stage.sandbox.set_scenario("demo")
    with client_of(stage) as lens:
        frame = lens.query("event_count", over=DAY, when_unavailable="clip")
    assert isinstance(frame.lens.receipt, gl.Receipt)
    assert frame.lens.receipt.provenance.scenario == "demo"
    assert f"Simulated: answered by the sandbox at {URL}, populated with the scenario demo." in frame.lens.explain()
