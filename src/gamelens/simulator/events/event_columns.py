"""The columns of the ledger, taken from the arrays of a block.

They are never taken from the JSON, so that a mistake in writing an event shows up as a difference between the ledger
and the service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from gamelens.simulator.events.event_json import AD_ACTIONS, VENDOR_FORMATS, BlockIds, Texts
from gamelens.simulator.population.arrays import Flags, Ints
from gamelens.simulator.population.behaviour import DESIGN_IDS, SEVERITIES, EventSlot, PlayedBlock
from gamelens.simulator.population.installs import arms_of, charged, publishers_of
from gamelens.simulator.population.players import DEVICES
from gamelens.simulator.scenarios.game_profile import GameProfile
from gamelens.simulator.scenarios.scenario import Scenario
from gamelens.wire.dimensions import EVENT_DIMENSIONS

_NAME: Final = pa.dictionary(pa.int32(), pa.string())

SCHEMA: Final = pa.schema(
    {
        "game_id": _NAME,
        "user_id": _NAME,
        "session_id": _NAME,
        "event_uuid": pa.string(),
        "client_ts": pa.int64(),  # epoch seconds
        **dict.fromkeys(EVENT_DIMENSIONS, _NAME),
        "ilrd_id": pa.string(),  # the vendor's id of the impression, if it gives one
        "ilrd_nano": pa.int64(),  # impression revenue in 1e-9 of ilrd_currency
        "ilrd_currency": _NAME,
        "amount": pa.int64(),  # purchase, hundredths of currency
        "currency": _NAME,
        "length": pa.int64(),  # of a finished session, in seconds
        "sent_as": _NAME,  # the defect, quirk or delivery problem that was simulated
        "verdict": _NAME,  # why it does not count
        "errors": pa.string(),  # due from the collector: "error_type path", separated by semicolons; or a status
    }
)
"""One row for each event, in the order sent. A value the event does not have is null.

An event without a verdict counts. An event without a client_ts counts at the time of its arrival.
"""

_FINISHES: Final = ("Fail", "Complete")
_DELIVERY_COLUMNS: Final = ("sent_as", "verdict", "errors")

CATEGORIES: Final[dict[EventSlot, str]] = {
    EventSlot.USER: "user",
    EventSlot.DESIGN: "design",
    EventSlot.START: "progression",
    EventSlot.FINISH: "progression",
    EventSlot.RESOURCE: "resource",
    EventSlot.GRANT: "resource",
    EventSlot.BUSINESS: "business",
    EventSlot.IMPRESSION: "impression",
    EventSlot.ERROR: "error",
    EventSlot.SESSION_END: "session_end",
    **dict.fromkeys(AD_ACTIONS, "ads"),
}

EXTRA: Final = ("event_id", "device", "os_version")
"""Further columns of an event in a lake, which the ledger does not keep."""


def ledger_rows_of(
    block: PlayedBlock, ids: BlockIds, *, game: GameProfile, game_id: str, scenario: Scenario
) -> pa.Table:
    """Return the events of *block* as rows of `SCHEMA`."""
    return event_columns_of(block, ids, game=game, game_id=game_id, scenario=scenario).select(SCHEMA.names)


def event_columns_of(
    block: PlayedBlock, ids: BlockIds, *, game: GameProfile, game_id: str, scenario: Scenario
) -> pa.Table:
    """Return the events of *block* in the order sent, with the columns of `SCHEMA` and `EXTRA`."""
    slot, round_, session = block.events.slot, block.events.round, block.events.session
    rounds, ad, ads, players = block.rounds, block.money.ad, game.ads, block.players
    player = block.sessions.player[session]
    country, platform, arm, publisher = (
        of_player[player] for of_player in (players.country, players.platform, players.arm, players.publisher)
    )
    arms = arms_of(game, scenario=scenario)
    devices = [(place, device) for place, name in enumerate(game.platforms) for device in DEVICES[name]]
    first_device = np.searchsorted([place for place, _ in devices], np.arange(len(game.platforms)))
    device = first_device[platform] + players.device[player]
    currencies = [scenario.country(code).currency for code in game.countries]
    prices = np.array([[item.price[currency] for currency in currencies] for item in game.purchases.items])
    is_ad, is_bought, is_shown = (
        np.isin(slot, list(AD_ACTIONS)),
        slot == EventSlot.BUSINESS,
        slot == EventSlot.IMPRESSION,
    )
    nothing = np.zeros_like(slot)
    formats = [VENDOR_FORMATS[ads.vendor][name] for name in ads.formats]
    columns = {
        "game_id": _names([game_id], nothing),
        "user_id": pa.DictionaryArray.from_arrays(pa.array(player.astype(np.int32)), texts_of(ids.user)),
        "session_id": pa.DictionaryArray.from_arrays(pa.array(session.astype(np.int32)), texts_of(ids.session)),
        "event_uuid": texts_of(ids.event),
        "client_ts": pa.array(block.events.ts_s),
        "category": _names([CATEGORIES[event] for event in EventSlot], slot),
        "country_code": _names(list(game.countries), country),
        "platform": _names(list(game.platforms), platform),
        "build": _names([build.name for build in game.builds], block.sessions.build[session]),
        "ab_id": _names([test_arm.experiment.id for test_arm in arms], arm, arm >= 0),
        "ab_variant_id": _names([test_arm.variant.id for test_arm in arms], arm, arm >= 0),
        "install_publisher": _names(publishers_of(game, scenario=scenario), publisher, publisher >= 0),
        "ad_sdk_name": _names([network.sdk_name for network in ads.networks], block.events.network, is_ad),
        "ad_type": _names(list(ads.formats), ad.format[round_], is_ad),
        "ad_action": _names([AD_ACTIONS.get(event, "") for event in EventSlot], slot, is_ad),
        "ilrd_sdk_vendor": _names([ads.vendor], nothing, is_shown),
        "ilrd_adunit_name": _names([unit.unit for unit in ads.formats.values()], ad.format[round_], is_shown),
        "ilrd_network_name": _names(
            [network.reported_name for network in ads.networks], ad.network[round_], is_shown & ~ad.is_unnamed[round_]
        ),
        "ilrd_adunit_format": _names(formats, ad.format[round_], is_shown),
        "ilrd_id": place_texts(ids.impression, is_shown),
        "ilrd_nano": _numbers(ad.micros[round_] * 1000, is_shown),
        "ilrd_currency": _names([ads.currency], nothing, is_shown),
        "amount": _numbers(charged(prices[block.money.item[round_], country], arms, arm), is_bought),
        "currency": _names(currencies, country, is_bought),
        "length": _numbers(block.sessions.length_s[session], slot == EventSlot.SESSION_END),
        "severity": _names(SEVERITIES, rounds.severity[round_], slot == EventSlot.ERROR),
        "event_id": _event_ids(block, game),
        "device": _names([device[1] for _, device in devices], device),
        "os_version": _names([device[2] for _, device in devices], device),
        **{name: pa.nulls(len(slot), SCHEMA.field(name).type) for name in _DELIVERY_COLUMNS},
    }
    return pa.table({name: columns[name] for name in dict.fromkeys((*SCHEMA.names, *EXTRA))})


def _event_ids(block: PlayedBlock, game: GameProfile) -> pa.DictionaryArray:
    """Return the `event_id` of each event that has one."""
    slot, rounds, round_ = block.events.slot, block.rounds, block.events.round
    item, coin, of_game = block.money.item[round_], game.economy.currency, game.economy
    level, finish = rounds.level[round_], rounds.finish[round_]
    ids: tuple[tuple[EventSlot, Ints, Callable[[int], str]], ...] = (
        (EventSlot.DESIGN, rounds.design[round_], lambda n: f"tutorial:step_{-n}" if n < 0 else DESIGN_IDS[n]),
        (EventSlot.START, level, lambda n: f"Start:{_level_name(n)}"),
        (EventSlot.FINISH, np.where(finish, level, -level), lambda n: f"{_FINISHES[n > 0]}:{_level_name(abs(n))}"),
        (
            EventSlot.RESOURCE,
            np.sign(rounds.coins[round_]),
            lambda n: f"Source:{coin}:{of_game.source}" if n > 0 else f"Sink:{coin}:{of_game.sink}",
        ),
        (EventSlot.GRANT, item, lambda n: f"Source:{coin}:{game.purchases.items[n].id}"),
        (EventSlot.BUSINESS, item, lambda n: game.purchases.items[n].id),
    )
    names: list[str] = []
    codes = np.full(len(slot), -1, dtype=np.int64)
    for of_slot, keys, name_of in ids:
        rows = np.flatnonzero(slot == of_slot)
        distinct, places = np.unique(keys[rows], return_inverse=True)
        codes[rows] = len(names) + places
        names += map(name_of, distinct.tolist())
    return _names(names or [""], codes, codes >= 0)


def _level_name(level: int) -> str:
    return f"world{1 + (level - 1) // 20:02d}:level{level:03d}"


def texts_of(ids: Texts) -> pa.StringArray:
    """Return *ids* as an Arrow array that shares their memory."""
    width = ids.dtype.itemsize
    ends = np.arange(len(ids) + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends), pa.py_buffer(ids))


def place_texts(texts: Texts, has: Flags) -> pa.StringArray:
    """Place one of *texts* at each element that *has* one, and null elsewhere.

    Without any texts, all elements are null.
    """
    if not len(texts):
        return pa.nulls(len(has), pa.string())
    return texts_of(texts).take(pa.array(np.cumsum(has) - 1, mask=~has))


def _names(names: Sequence[str], codes: Ints, has: Flags | None = None) -> pa.DictionaryArray:
    """Return names[codes] where it *has* one (by default everywhere), else null.

    Equal names share one entry.
    """
    distinct = list(dict.fromkeys(names))
    if len(distinct) != len(names):
        codes = np.array([distinct.index(name) for name in names])[codes]
    nulls = None if has is None or has.all() else ~has
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=nulls), pa.array(distinct, pa.string()))


def _numbers(values: Ints, has: Flags) -> pa.Array:
    """Return *values* where it *has* one, else null."""
    return pa.array(values, pa.int64(), mask=None if has.all() else ~has)
