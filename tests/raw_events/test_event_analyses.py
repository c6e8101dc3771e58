"""What only events can tell, against plain Python over the JSON lines that the lake was made of."""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gamelens import raw_events
from gamelens.analysis.wilson_intervals import wilson
from gamelens.errors import BadQuery, NotYetAvailable
from gamelens.raw_events.lake_client import LakeClient, open_lake
from gamelens.receipts import Receipt
from gamelens.sandbox.imports.import_run import import_raw_events
from gamelens.sandbox.state.clock import Clock
from gamelens.simulator import Ledger, export_raw, load_scenario
from gamelens.wire.currencies import USD_PER_UNIT
from support import game_events
from support.game_events import NOW
from support.raw_exports import take, wrapped, write_lines
from support.sandbox_stage import Stage

pytestmark = pytest.mark.slow

SCENARIO = load_scenario("small", players=220, days=21)
ENDS_ON = date(2026, 11, 10)
"""The clocks of New York go back on the first of November."""
OVER = "2026-10-26/2026-11-08"


class Played(NamedTuple):
    """An event as its line has it, in the order of arrival, with what it earned in US dollars."""

    ts: datetime
    game: str
    user: str
    session: str
    category: str
    event_id: str | None
    custom: str | None
    device: str
    variant: str | None
    usd: float


class Exported(NamedTuple):
    """A file of JSON lines, and their events."""

    path: Path
    events: list[Played]


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Return an export of the scenario, in which players with an even id have a custom field.

    One event is at the very end of `OVER`, which does not belong to it.
    """
    folder = tmp_path_factory.mktemp("export")
    ledger = Ledger()
    export_raw(SCENARIO, folder / "json", "raw-json", ends_on=ENDS_ON, ledger=ledger)
    ledger.write(folder / "truth.parquet")
    rows = pq.read_table(folder / "truth.parquet", columns=["event_uuid", "ilrd_nano", "ilrd_currency"]).to_pylist()
    earned = {
        row["event_uuid"]: float(row["ilrd_nano"] * USD_PER_UNIT[row["ilrd_currency"]]) / 1e9
        for row in rows
        if row["ilrd_nano"] is not None
    }
    files = sorted((folder / "json").rglob("*.gz"), key=lambda path: path.name)
    lines = [json.loads(line) for path in files for line in gzip.decompress(path.read_bytes()).splitlines()]
    found = []
    lines.sort(key=lambda line: line["arrival_ts"])
    end_s = int(datetime.fromisoformat(OVER.split("/")[1]).replace(tzinfo=UTC).timestamp())
    later = (line["data"] for line in lines if line["data"]["client_ts"] >= end_s)
    min(later, key=lambda data: data["client_ts"])["client_ts"] = end_s
    for line in lines:
        data = line["data"]
        if int(data["user_id"][0], 16) % 2 == 0:
            data["custom_01"] = data["user_id"][1]
        usd = float(data["amount"] * USD_PER_UNIT[data["currency"]]) / 100 if data["category"] == "business" else 0.0
        at = datetime.fromtimestamp(data["client_ts"], UTC)
        of = (str(line["game_id"]), data["user_id"], data["session_id"], data["category"], data.get("event_id"))
        more = (data.get("custom_01"), data["device"], data.get("ab_variant_id"))
        found.append(Played(at, *of, *more, usd + earned.get(data["event_uuid"], 0.0)))
    text = b"\n".join(json.dumps(line).encode() for line in lines) + b"\n"
    (folder / "all.gz").write_bytes(gzip.compress(text))
    return Exported(folder / "all.gz", found)


@pytest.fixture(scope="module")
def events(export: Exported) -> list[Played]:
    """Return the events of the export."""
    return export.events


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, export: Exported) -> Iterator[LakeClient]:
    """Return a lake with the lines."""
    state = tmp_path_factory.mktemp("lake") / "state"
    Stage(state).sandbox.close()
    clock = Clock()
    clock.freeze(NOW)
    assert import_raw_events(state, [str(export.path)], clock=clock).events == len(export.events)
    with open_lake(state, organisation="acme", progress=False) as lake:
        yield lake


def within(events: list[Played], zone: str = "UTC") -> list[Played]:
    """Return the events of `OVER` in *zone*."""
    start, end = (datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(zone)) for day in OVER.split("/"))
    return [event for event in events if start.astimezone(UTC) <= event.ts < end.astimezone(UTC)]


def start_of(event: Played, every: str, zone: str) -> datetime:
    """Return the start of the bucket of *event*, UTC."""
    local = event.ts.astimezone(ZoneInfo(zone))
    if every == "hour":
        return event.ts - timedelta(minutes=local.minute, seconds=local.second)
    day = local.replace(hour=0, minute=0, second=0, fold=0)
    first = {"day": day, "week": day - timedelta(days=day.weekday()), "month": day.replace(day=1)}[every]
    return first.astimezone(UTC)


@pytest.mark.shown_by("hour-America/New_York", "day-UTC", "day-America/Sao_Paulo")
@pytest.mark.parametrize(
    ("every", "zone"),
    [
        *(("hour", zone) for zone in ("America/New_York", "Asia/Kathmandu")),
        *(("day", zone) for zone in ("UTC", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu")),
        *(("week", "America/New_York"), ("month", "America/Sao_Paulo")),
    ],
)
def test_buckets_of_any_zone_equal_python(lake: LakeClient, events: list[Played], every: Any, zone: str) -> None:
    """Events, players, sessions and money of every local bucket, also of the hour that a clock shows twice."""
    expected: defaultdict[datetime, list[Played]] = defaultdict(list)
    for event in within(events, zone):
        expected[start_of(event, every, zone)].append(event)
    frame = raw_events.count_events(lake, OVER, every=every, zone=zone)
    rows = frame.assign(timestamp=frame["timestamp"].dt.tz_convert("UTC")).to_dict("records")
    assert [row["timestamp"].to_pydatetime() for row in rows] == sorted(expected)
    assert str(frame["timestamp"].dt.tz) == zone
    for row in rows:
        of_bucket = expected[row["timestamp"].to_pydatetime()]
        assert row["events"] == len(of_bucket)
        assert row["players"] == len({(event.game, event.user) for event in of_bucket})
        assert row["sessions"] == len({(event.game, event.session) for event in of_bucket})
        bought = sum(event.usd for event in of_bucket if event.category == "business")
        assert row["revenue"] == pytest.approx(bought, rel=1e-9)
        assert row["ad_revenue"] == pytest.approx(sum(event.usd for event in of_bucket) - bought, rel=1e-9, abs=1e-12)


@pytest.mark.shown_by(2)
@pytest.mark.parametrize(
    ("name", "value_of"),
    [
        ("custom_01", lambda event: event.custom),
        ("device", lambda event: event.device),
        ("event_id", lambda event: event.event_id),
        ("event_id_02", lambda event: (event.event_id or "").split(":")[1:2]),
        ("ab_variant_id", lambda event: event.variant),
    ],
)
def test_any_column_is_a_dimension(lake: LakeClient, events: list[Played], name: str, value_of: Any) -> None:
    """Custom fields, parts of `event_id` and devices split events; a null is a group."""

    def text(value: Any) -> str | None:
        return (value[0] if value else None) if isinstance(value, list) else value

    expected = Counter(text(value_of(event)) for event in within(events) if event.game == "1001")
    frame = raw_events.count_events(lake, OVER, every="all", by=name, games="1001")
    found = {
        None if pd.isna(value) else value: count for value, count in zip(frame[name], frame["events"], strict=True)
    }
    assert found == expected
    assert len(found) > 1


def test_a_condition_narrows(lake: LakeClient, events: list[Played]) -> None:
    """`where` is SQL over the events, and a receipt names the lake."""
    frame = raw_events.count_events(lake, OVER, every="all", where="category = 'ads' OR event_id_01 = 'ui'")
    expected = [e for e in within(events) if e.category == "ads" or (e.event_id or "").startswith("ui:")]
    assert frame["events"].tolist() == [len(expected)]
    assert raw_events.count_events(lake, OVER, every="all", games=[]).empty
    assert raw_events.count_events(lake, OVER, every="all", where="event_id = '$games'").empty
    receipt = Receipt.of(frame.attrs)
    assert (receipt.provenance.kind, receipt.asked.interval) == ("lake", "2026-10-26T00:00Z/2026-11-08T00:00Z")


STEPS = ["tutorial:step_1", "Start", "Complete:world01:level001", "Complete:world01:level003", "ui", "impression"]


def is_in(event: Played, step: str) -> bool:
    """Return whether *event* is of *step*: a category, an `event_id`, or its first parts."""
    return step in (event.category, event.event_id) or (event.event_id or "").startswith(f"{step}:")


@pytest.mark.parametrize("only_new", [False, True])
def test_a_funnel_equals_python(lake: LakeClient, events: list[Played], only_new: bool) -> None:
    """Players, or those who installed in the time alone, are walked through the steps one by one."""
    start = min(event.ts for event in within(events))
    old = {(event.game, event.user) for event in events if event.ts < start}
    by_player: defaultdict[tuple[str, str], list[Played]] = defaultdict(list)
    for event in within(events):
        if not (only_new and (event.game, event.user) in old):
            by_player[event.game, event.user].append(event)
    reached: Counter[int] = Counter()
    for own in by_player.values():
        since = datetime.min.replace(tzinfo=UTC)
        for number, step in enumerate(STEPS, 1):
            times = [event.ts for event in own if event.ts >= since and is_in(event, step)]
            if not times:
                break
            since = min(times)
            reached[number] += 1
    frame = raw_events.funnel(lake, STEPS, OVER, only_new=only_new)
    assert frame["players"].tolist() == [reached[number] for number in range(1, len(STEPS) + 1)]
    assert reached[1] > reached[4] > 0
    assert frame["share"].tolist() == pytest.approx([reached[number] / reached[1] for number in range(1, 7)])
    assert frame["of_previous"].tolist()[1:] == pytest.approx([reached[n] / reached[n - 1] for n in range(2, 7)])
    low, high = wilson([reached[4]], [reached[1]])
    assert (frame["low"][3], frame["high"][3]) == pytest.approx((low[0], high[0]))


def test_a_funnel_that_nobody_begins_has_no_shares(lake: LakeClient) -> None:
    """Shares of nobody are not known."""
    frame = raw_events.funnel(lake, ["nothing:at:all", "user"], OVER)
    assert frame["players"].tolist() == [0, 0]
    assert frame[["share", "low", "high", "of_previous"]].isna().all(axis=None)


@pytest.mark.parametrize("away", [1, 4])
def test_active_players_equal_python(lake: LakeClient, events: list[Played], away: int) -> None:
    """New, returning and resurrected players are told apart, and add up to the daily active of the service."""
    days: defaultdict[tuple[str, str], set[date]] = defaultdict(set)
    for event in events:
        days[event.game, event.user].add(event.ts.date())
    expected: defaultdict[tuple[date, str], Counter[str]] = defaultdict(Counter)
    for (game, _), played in days.items():
        ordered = sorted(played)
        for place, day in enumerate(ordered):
            gap = (day - ordered[place - 1]).days if place else 0
            expected[day, game]["new" if not place else "resurrected" if gap > away else "returning"] += 1
    frame = raw_events.active_players(lake, OVER, away=away)
    kinds = ["new", "returning", "resurrected"]
    for row in frame.to_dict("records"):
        counts = expected[row["timestamp"].date(), row["game_id"]]
        assert {kind: row[kind] for kind in kinds} == {kind: counts[kind] for kind in kinds}
    assert frame["resurrected"].sum() > 0
    dau = lake.query("user_unique", by="game_id", over=OVER, every="day").sort_values(["timestamp", "game_id"])
    assert frame["active"].tolist() == dau["user_unique"].tolist() == frame[kinds].sum(axis=1).tolist()


@pytest.mark.wide
def test_a_day_before_the_stated_install_has_no_returning_player(tmp_path: Path) -> None:
    """A clock that was days slow makes nobody returning, as in the metrics (Wire 4.4, Install)."""
    now_s = int(NOW.timestamp())
    stated = {"arrival_ts": now_s, "user_meta": {"install_ts": now_s - 2 * 86_400}}
    lines = [wrapped(game_events.event(client_ts=now_s - days * 86_400), **stated) for days in (4, 2, 1)]
    take(tmp_path / "state", write_lines(tmp_path / "a.gz", *lines))
    with open_lake(tmp_path / "state", organisation="acme", progress=False) as lake:
        active = raw_events.active_players(lake, "2026-11-16/2026-11-20")
        back = lake.query("returning_users", by="game_id", over="2026-11-16/2026-11-20", every="day")
    assert active["timestamp"].dt.day.tolist() == [16, 18, 19]
    assert active["new"].tolist() == [1, 1, 0]
    assert active["returning"].tolist() == [0, 0, 1]
    assert back[back["returning_users"] > 0]["timestamp"].dt.day.tolist() == [19]


@pytest.mark.shown_by(1)
@pytest.mark.parametrize(("of", "steps"), [("category", 3), ("category", 40), ("event_id_01", 5)])
def test_session_paths_equal_python(lake: LakeClient, events: list[Played], of: str, steps: int) -> None:
    """Sequences are those of the events in their order, without repetitions."""
    first: dict[tuple[str, str], datetime] = {}
    values: defaultdict[tuple[str, str], list[tuple[datetime, str]]] = defaultdict(list)
    for event in events:
        session = event.game, event.session
        first[session] = min(first.get(session, event.ts), event.ts)
        value = event.category if of == "category" else (event.event_id or "").split(":")[0]
        if value:
            values[session].append((event.ts, value))
    start, end = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in OVER.split("/"))
    expected: Counter[str] = Counter()
    for session, own in values.items():
        if start <= first[session] < end:
            ordered = [value for _, value in sorted(own, key=lambda it: it[0])]
            expected[" > ".join([value for value, _ in groupby(ordered)][:steps])] += 1
    frame = raw_events.session_paths(lake, OVER, of=of, steps=steps, top=10_000)
    assert dict(zip(frame["path"], frame["sessions"], strict=True)) == expected
    assert frame["share"].sum() == pytest.approx(1)
    top = raw_events.session_paths(lake, OVER, of=of, steps=steps, top=3)
    assert top["sessions"].tolist() == frame["sessions"].tolist()[:3]
    assert top["share"].tolist() == frame["share"].tolist()[:3]
    assert (top["low"] < top["share"]).all()


@pytest.mark.parametrize("days", [1, 5])
def test_money_by_player_equals_python(lake: LakeClient, events: list[Played], days: int) -> None:
    """Each player has a row with the money of the first days, the install day included."""
    installed: dict[tuple[str, str], date] = {}
    for event in events:
        player = event.game, event.user
        installed[player] = min(installed.get(player, event.ts.date()), event.ts.date())
    money: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for event in events:
        if (event.ts.date() - installed[event.game, event.user]).days < days:
            money[event.game, event.user][event.category != "business"] += event.usd
    over = "2026-10-24/2026-11-01"
    cohort = {who for who, day in installed.items() if date(2026, 10, 24) <= day < date(2026, 11, 1)}
    frame = raw_events.player_money(lake, over, days=days)
    assert set(zip(frame["game_id"], frame["user_id"], strict=True)) == cohort
    assert len(frame) == len(cohort) > 50
    for row in frame.to_dict("records"):
        assert row["timestamp"].date() == installed[row["game_id"], row["user_id"]]
        assert [row["revenue"], row["ad_revenue"]] == pytest.approx(
            money[row["game_id"], row["user_id"]], rel=1e-9, abs=1e-12
        )
    assert frame["ad_revenue"].sum() > 0
    assert Receipt.of(frame.attrs).provenance.kind == "lake"


def test_what_is_not_in_the_lake_is_refused(lake: LakeClient) -> None:
    """Each error names the value and what is allowed."""
    with pytest.raises(BadQuery, match="zone = 'Sao_Paulo' is not a time zone"):
        raw_events.count_events(lake, OVER, zone="Sao_Paulo")
    with pytest.raises(BadQuery, match="by = 'mood'"):
        raw_events.count_events(lake, OVER, by="mood")
    with pytest.raises(BadQuery, match="every = 'minute'"):
        raw_events.count_events(lake, OVER, every="minute")  # type: ignore[arg-type]
    with pytest.raises(BadQuery, match="cannot be run"):
        raw_events.count_events(lake, OVER, where="mood = 'good'")
    with pytest.raises(BadQuery, match="games = '7' is not a game"):
        raw_events.active_players(lake, OVER, games=["7"])
    with pytest.raises(BadQuery, match="away = 0"):
        raw_events.active_players(lake, OVER, away=0)
    with pytest.raises(BadQuery, match="of = 'ts' is not a text column"):
        raw_events.session_paths(lake, OVER, of="ts")
    with pytest.raises(BadQuery, match="top = 0"):
        raw_events.session_paths(lake, OVER, top=0)
    with pytest.raises(BadQuery, match="steps"):
        raw_events.funnel(lake, [], OVER)
    with pytest.raises(BadQuery, match="days = 0"):
        raw_events.player_money(lake, OVER, days=0)
    with pytest.raises(NotYetAvailable):
        raw_events.player_money(lake, "2026-11-12/2026-11-19", days=30)
    assert raw_events.player_money(lake, "2026-11-12/2026-11-19", days=30, when_unavailable="clip").empty


def test_purchases_that_event_data_lacks_are_not_zero(tmp_path: Path) -> None:
    """Over its days revenue by hour is unknown, with the reason, and money by player refused; other games have it."""
    at = datetime(2026, 11, 17, 12, tzinfo=UTC)
    row = {"event_client_ts": at, "event_arrival_ts": at, "game_id": 1001, "user_id": "u", "event_id_01": "kill"}
    pq.write_table(pa.Table.from_pylist([row | {"event_id_02": None}]), tmp_path / "a.parquet")
    Stage(tmp_path / "state").sandbox.close()
    clock = Clock()
    clock.freeze(NOW)
    import_raw_events(tmp_path / "state", [str(tmp_path / "a.parquet")], clock=clock)
    with open_lake(tmp_path / "state", organisation="acme", progress=False) as lake:
        frame = raw_events.count_events(lake, "2026-11-18/2026-11-19", zone="Pacific/Honolulu")
        assert frame.empty
        frame = raw_events.count_events(lake, "2026-11-17/2026-11-18")
        assert (frame["events"].tolist(), frame["revenue"].isna().tolist()) == ([1], [True])
        assert "Event Data, which has no purchases" in Receipt.of(frame.attrs).warnings[0]
        other = raw_events.count_events(lake, "2026-11-17/2026-11-18", every="all", games=["1002"])
        assert Receipt.of(other.attrs).warnings == ()
        with pytest.raises(BadQuery, match="Event Data, which has no purchases"):
            raw_events.player_money(lake, "2026-11-17/2026-11-18", days=1)


def test_players_with_days_to_come_are_left_out(lake: LakeClient) -> None:
    """Clipped, the install days end where the last day of their players is over: the lake ends on the 20th at 10."""
    frame = raw_events.player_money(lake, "2026-10-24/2026-11-19", days=18, when_unavailable="clip")
    assert frame["timestamp"].max() == pd.Timestamp("2026-11-02", tz="UTC")
    assert Receipt.of(frame.attrs).clipped == "2026-10-24T00:00Z/2026-11-03T00:00Z"
