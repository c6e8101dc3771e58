"""What is sent: the same bytes for the same seed, only good events, every player's in order."""

from __future__ import annotations

import gzip
import re
from collections import Counter, defaultdict
from datetime import date
from hashlib import sha256
from itertools import groupby, pairwise
from multiprocessing import active_children

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gamelens.errors import BadQuery
from gamelens.simulator import VERSION, Ledger, expect, load_scenario, play
from gamelens.wire.event_validator import LENIENT, STRICT
from gamelens.wire.limits import BODY_BYTES

ENDS_ON = date(2026, 11, 21)
END_S, DAY_S = 1_795_219_200, 86_400
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def bodies(**given) -> list[bytes]:
    return [batch.body for batch in play(load_scenario("small", players=60, days=10, **given), ends_on=ENDS_ON)]


def by_player(events):
    told = defaultdict(list)
    for event in events:
        told[event["game_id"], event["user_id"]].append(event)
    return told


def by_session(events):
    return {key: list(some) for key, some in groupby(events, key=lambda event: event["session_id"])}


def ended(events):
    """Sessions that were over before the scenario was."""
    return [some for some in by_session(events).values() if some[-1]["category"] == "session_end"]


def test_same_seed_same_bytes() -> None:
    assert bodies() == bodies()


def test_the_version_of_the_generator_stands_for_its_bytes() -> None:
    """Whoever changes these bytes gives the generator a new version: what was played is known by it."""
    assert (VERSION, sha256(b"".join(bodies())).hexdigest()[:16]) == (3, "fe329a5905d52309")


def test_the_version_is_part_of_what_is_expected() -> None:
    assert expect(load_scenario("small", players=30, days=5), ends_on=ENDS_ON).version == VERSION


def test_another_seed_other_bytes() -> None:
    assert bodies() != bodies(seed=99)


@pytest.mark.slow
def test_bytes_are_the_same_with_any_number_of_workers() -> None:
    """Issue, Build 7: in the same order, and the ledger as well."""
    scenario, books = load_scenario("small", players=2600, days=3), (Ledger(), Ledger())
    alone, shared = (
        list(play(scenario, ends_on=ENDS_ON, ledger=ledger, workers=workers))
        for ledger, workers in zip(books, (1, 3), strict=True)
    )
    assert alone == shared
    assert books[0].summary() == books[1].summary()


@pytest.mark.slow
def test_workers_end_with_whoever_stops_listening() -> None:
    batches = play(load_scenario("small", players=2600, days=3), ends_on=ENDS_ON, workers=2)
    next(batches)
    assert len(active_children()) == 2
    batches.close()
    assert active_children() == []


def test_at_least_one_worker_is_asked_for() -> None:
    with pytest.raises(BadQuery, match="workers"):
        next(play(load_scenario("small"), ends_on=ENDS_ON, workers=0))


def test_a_block_does_not_depend_on_the_players_after_it() -> None:
    """Each block has its own child of the seed: more players leave the first ones as they are."""
    few, many = (load_scenario("small", players=players, days=5) for players in (1300, 2600))
    assert next(play(few, ends_on=ENDS_ON)).body == next(play(many, ends_on=ENDS_ON)).body


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**63 - 1), players=st.integers(1, 40), days=st.integers(1, 40))
def test_every_event_of_every_scenario_is_good(seed, players, days) -> None:
    """Collector, Event object; public-facts 2."""
    scenario = load_scenario("small", seed=seed, players=players, days=days)
    for batch in play(scenario, ends_on=ENDS_ON):
        assert len(LENIENT.decode(batch.body)) == batch.events


@pytest.mark.parametrize("rules", [LENIENT, STRICT], ids=["lenient", "strict"])
def test_every_event_of_small_is_good(played, rules) -> None:
    assert sum(len(rules.decode(batch.body)) for batch in played.batches) == len(played.events)


def test_times_of_a_player_strictly_ascend_in_the_order_sent(played) -> None:
    assert all(
        before["client_ts"] < after["client_ts"]
        for events in by_player(played.events).values()
        for before, after in pairwise(events)
    )


def test_every_event_lies_in_the_scenario(played) -> None:
    times = [event["client_ts"] for event in played.events]
    assert END_S - 30 * DAY_S <= min(times) <= max(times) < END_S


def test_every_player_of_the_scenario_plays(played) -> None:
    counts = Counter(game for game, _ in by_player(played.events))
    assert list(counts.values()) == played.scenario.players_by_game()


def test_a_session_opens_with_user(played) -> None:
    """public-facts 2.5: user comes first in a session."""
    assert all(some[0]["category"] == "user" for some in by_session(played.events).values())


def test_a_session_has_one_user_event(played) -> None:
    assert all(sum(event["category"] == "user" for event in some) == 1 for some in by_session(played.events).values())


def test_only_sessions_running_at_the_end_lack_a_session_end(played) -> None:
    """A session lasts four hours at most."""
    running = [some for some in by_session(played.events).values() if some[-1]["category"] != "session_end"]
    assert all(some[0]["client_ts"] > END_S - 5 * 3600 for some in running)


def test_session_end_tells_the_length_of_the_session(played) -> None:
    assert all(some[-1]["length"] == some[-1]["client_ts"] - some[0]["client_ts"] for some in ended(played.events))


def test_session_num_counts_the_sessions_of_a_player(played) -> None:
    for events in by_player(played.events).values():
        numbers = [number for number, _ in groupby(event["session_num"] for event in events)]
        assert numbers == list(range(1, len(numbers) + 1))


def test_transaction_num_counts_the_purchases_of_a_player(played) -> None:
    for events in by_player(played.events).values():
        numbers = [event["transaction_num"] for event in events if event["category"] == "business"]
        assert numbers == list(range(1, len(numbers) + 1))


def test_purchases_are_in_the_currency_of_the_country(played) -> None:
    bought = [event for event in played.events if event["category"] == "business"]
    currencies = {country.code: country.currency for country in played.scenario.countries}
    assert bought
    assert all(event["currency"] == currencies[event["country_code"]] for event in bought)


def test_builds_of_a_player_never_go_back(played) -> None:
    builds = {
        game_id: [build.name for build in game.builds]
        for game_id, game in zip(("1001", "1002", "2001"), played.scenario.games, strict=True)
    }
    for (game_id, _), events in by_player(played.events).items():
        places = [builds[game_id].index(event["build"]) for event in events]
        assert places == sorted(places)


def test_ids_are_version_4_uuids_and_event_uuids_unique(played) -> None:
    ids = [event["event_uuid"] for event in played.events]
    assert len(set(ids)) == len(ids)
    assert all(UUID4.fullmatch(event[name]) for event in played.events for name in ("event_uuid", "session_id"))


@pytest.mark.parametrize("ends_on", [date(1970, 1, 9), date(2001, 9, 14)])
def test_moments_of_fewer_digits_are_numbers_as_well(ends_on) -> None:
    """In 2001 the seconds since 1970 got their tenth digit."""
    days = (ends_on - date(1970, 1, 1)).days
    for batch in play(load_scenario("small", players=20, days=8), ends_on=ends_on):
        moments = [event["client_ts"] for event in msgspec.json.decode(batch.body)]
        assert (days - 8) * DAY_S <= min(moments) <= max(moments) < days * DAY_S


def test_custom_integrations_say_rest_api_v2(played) -> None:
    """Collector, Versioning 3."""
    assert {(event["sdk_version"], event["v"]) for event in played.events} == {("rest api v2", 2)}


def test_an_ad_is_requested_before_it_is_shown_and_reported_after(played) -> None:
    for events in by_player(played.events).values():
        told = [event.get("ad_action", event["category"]) for event in events]
        for before, now in pairwise(told):
            assert now not in ("show", "failed_show") or before == "request"
            assert now != "impression" or before == "show"


def test_an_ad_not_shown_gives_a_reason(played) -> None:
    """public-facts 2.5: ad_fail_show_reason only with failed_show."""
    ads = [event for event in played.events if event["category"] == "ads"]
    assert {("ad_fail_show_reason" in event) == (event["ad_action"] == "failed_show") for event in ads} == {True}


def test_rewards_come_for_rewarded_videos_only(played) -> None:
    rewarded = [event["ad_type"] for event in played.events if event.get("ad_action") == "reward_received"]
    assert set(rewarded) == {"rewarded_video"}


@pytest.mark.parametrize(
    ("vendor", "keys"),
    [
        ("max", {"country", "network_name", "adunit_id", "adunit_format", "placement", "creative_id", "revenue"}),
        ("admob", {"adunit_id", "currency", "precision", "adunit_format", "network_class_name", "revenue"}),
        ("ironsource", {"auction_id", "ad_unit", "ad_network", "instance_name", "country", "placement", "revenue"}),
    ],
)
def test_impressions_have_the_keys_of_their_vendor(played, vendor, keys) -> None:
    """public-facts 2.6."""
    told = [event["impression_data"] for event in played.events if event.get("ad_network_name") == vendor]
    assert told
    assert all(keys <= data.keys() for data in told)


def test_impression_revenue_has_at_most_six_decimals() -> None:
    """So that nano-units are whole numbers (metrics.md, Words)."""
    told = [text for body in bodies() for text in re.findall(rb'"revenue":([0-9.]+)', body)]
    assert told
    assert all(len(text.partition(b".")[2]) in (0, 6) for text in told)


def test_some_impressions_do_not_tell_the_network(played) -> None:
    told = [event["impression_data"] for event in played.events if event.get("ad_network_name") == "max"]
    assert {data["network_name"] for data in told} > {None, "AppLovin"}


def test_batches_are_well_below_the_body_limit(played) -> None:
    """Collector, Limits: 1 MB as sent."""
    assert max(len(gzip.compress(batch.body)) for batch in played.batches) < BODY_BYTES / 10


def test_batches_hold_at_most_450_events_of_one_game(played) -> None:
    assert max(batch.events for batch in played.batches) == 450
    assert all(len(msgspec.json.decode(batch.body)) == batch.events for batch in played.batches)


def test_games_are_matched_by_position_and_further_ones_stay_silent() -> None:
    scenario = load_scenario("small", players=30, days=3)
    told = {batch.game_id for batch in play(scenario, ends_on=ENDS_ON, game_ids=["a", "b", "c", "d"])}
    assert told == {"a", "b", "c"}


def test_too_few_games_are_refused_at_once() -> None:
    with pytest.raises(BadQuery, match=r"game_ids .* 3 games"):
        play(load_scenario("small"), ends_on=ENDS_ON, game_ids=["a", "b"])


def test_a_game_id_given_twice_is_refused() -> None:
    with pytest.raises(BadQuery, match=r"game_ids .* different"):
        play(load_scenario("small"), ends_on=ENDS_ON, game_ids=["a", "b", "a"])


def test_a_session_may_run_past_midnight(played) -> None:
    """Only the end of the scenario cuts."""
    days = [(some[0]["client_ts"] // DAY_S, some[-1]["client_ts"] // DAY_S) for some in ended(played.events)]
    assert any(first < last for first, last in days)


def test_expected_players_are_exact_and_events_near(played) -> None:
    expected = expect(played.scenario, ends_on=ENDS_ON)
    assert expected.players == 600
    assert expected.events == pytest.approx(len(played.events), rel=0.15)


def test_expected_retention_is_the_closed_form() -> None:
    told = expect(load_scenario("small", players=30, days=5), ends_on=ENDS_ON).games[0]
    assert (told.d1, told.d7, told.d28) == pytest.approx((0.37, 0.125, 0.04))


def test_playing_into_a_ledger_changes_no_byte() -> None:
    scenario = load_scenario("small", players=30, days=5)
    assert list(play(scenario, ends_on=ENDS_ON)) == list(play(scenario, ends_on=ENDS_ON, ledger=Ledger()))
