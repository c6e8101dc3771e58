"""The columns of the ledger, taken from the arrays of a block.

They are never taken from the JSON, so that a mistake in writing an event shows up as a difference between the ledger
and the service.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from gamelens.simulator.events.event_json import AD_ACTIONS, BlockIds, Texts
from gamelens.simulator.events.impression_json import VENDOR_FORMATS
from gamelens.simulator.population.arrays import Flags, Ints
from gamelens.simulator.population.behaviour import DESIGN_IDS, SEVERITIES, EventSlot, PlayedBlock
from gamelens.simulator.population.experiment_arms import arms_of
from gamelens.simulator.population.installs import publishers_of
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


class Names(NamedTuple):
    """A column of names: `names[codes]` where it *has* one, else null."""

    names: list[str]
    codes: Ints
    has: Flags

    def at(self, rows: Ints) -> Names:
        """Return the values of *rows*."""
        return Names(self.names, self.codes[rows], self.has[rows])

    def to_arrow(self) -> pa.DictionaryArray:
        """Return a dictionary column."""
        codes = pa.array(self.codes.astype(np.int32), mask=_null_mask(self.has))
        return pa.DictionaryArray.from_arrays(codes, pa.array(self.names, pa.string()))


class Numbers(NamedTuple):
    """A column of whole numbers: *values* where it *has* one, else null."""

    values: Ints
    has: Flags

    def to_arrow(self) -> pa.Array:
        """Return an int64 column."""
        return pa.array(self.values, pa.int64(), mask=_null_mask(self.has))


@dataclass(frozen=True, eq=False, slots=True)
class EventColumns:
    """The events of a block as columns, in the order sent.

    Attributes:
        ids: UUIDs of players, sessions, events and impressions.
        session: session of each event.
        player: player of each session.
        ts_s: time of each event in epoch seconds.
        names: columns of names by event.
        numbers: columns of numbers by event.
        session_names: columns of names by session, which all its events share.
    """

    ids: BlockIds
    session: Ints
    player: Ints
    ts_s: Ints
    names: dict[str, Names]
    numbers: dict[str, Numbers]
    session_names: dict[str, Names]

    def to_arrow(self) -> pa.Table:
        """Return the events as rows of `SCHEMA`."""
        columns = {
            "user_id": _id_column(self.player[self.session], self.ids.user),
            "session_id": _id_column(self.session, self.ids.session),
            "event_uuid": texts_of(self.ids.event),
            "client_ts": pa.array(self.ts_s),
            "ilrd_id": _place_values(texts_of(self.ids.impression), self.names["ilrd_sdk_vendor"].has),
            **{name: column.at(self.session).to_arrow() for name, column in self.session_names.items()},
            **{name: column.to_arrow() for name, column in (self.names | self.numbers).items()},
            **{name: pa.nulls(len(self.ts_s), SCHEMA.field(name).type) for name in _DELIVERY_COLUMNS},
        }
        return pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA)


def event_columns_of(
    block: PlayedBlock, ids: BlockIds, *, game: GameProfile, game_id: str, scenario: Scenario
) -> EventColumns:
    """Return the columns of the events of *block*."""
    slot, round_, session = block.events.slot, block.events.round, block.events.session
    players, player = block.players, block.sessions.player
    return EventColumns(
        ids=ids,
        session=session,
        player=player,
        ts_s=block.events.ts_s,
        names={
            "category": _name_column([CATEGORIES[each] for each in EventSlot], slot),
            "severity": _name_column(SEVERITIES, block.rounds.severity[round_], slot == EventSlot.ERROR),
            "currency": _name_column(
                _currencies(game, scenario), players.country[player][session], slot == EventSlot.BUSINESS
            ),
            "event_id": _event_ids(block, game),
            **_ad_columns(block, game),
            **_impression_columns(block, game),
        },
        numbers={
            "ilrd_nano": Numbers(block.money.ad.micros[round_] * 1000, slot == EventSlot.IMPRESSION),
            "amount": _prices(block, game, scenario),
            "length": Numbers(block.sessions.length_s[session], slot == EventSlot.SESSION_END),
        },
        session_names={
            "game_id": _name_column([game_id], np.zeros_like(player)),
            "country_code": _name_column(list(game.countries), players.country[player]),
            "platform": _name_column(list(game.platforms), players.platform[player]),
            "build": _name_column([build.name for build in game.builds], block.sessions.build),
            **_device_columns(block, player, game),
            **_origin_columns(block, player, game, scenario),
        },
    )


def _device_columns(block: PlayedBlock, player: Ints, game: GameProfile) -> dict[str, Names]:
    """Return the device of each *player* and its operating system."""
    devices = [(place, device) for place, platform in enumerate(game.platforms) for device in DEVICES[platform]]
    firsts = np.searchsorted([place for place, _ in devices], np.arange(len(game.platforms)))
    chosen = firsts[block.players.platform[player]] + block.players.device[player]
    return {
        name: _name_column([device[part] for _, device in devices], chosen)
        for name, part in (("device", 1), ("os_version", 2))
    }


def _event_ids(block: PlayedBlock, game: GameProfile) -> Names:
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
    return _name_column(names or [""], codes, codes >= 0)


def _level_name(level: int) -> str:
    return f"world{1 + (level - 1) // 20:02d}:level{level:03d}"


def _origin_columns(block: PlayedBlock, player: Ints, game: GameProfile, scenario: Scenario) -> dict[str, Names]:
    """Return the variant and the publisher of each *player*."""
    arms, arm = arms_of(game, scenario=scenario), block.players.arm[player]
    publisher = block.players.publisher[player]
    return {
        "ab_id": _name_column([each.experiment.id for each in arms], arm, arm >= 0),
        "ab_variant_id": _name_column([each.variant.id for each in arms], arm, arm >= 0),
        "install_publisher": _name_column(publishers_of(game, scenario=scenario), publisher, publisher >= 0),
    }


def _ad_columns(block: PlayedBlock, game: GameProfile) -> dict[str, Names]:
    """Return the columns that only `ads` events have."""
    slot, ad = block.events.slot, block.money.ad
    is_ad = np.isin(slot, list(AD_ACTIONS))
    return {
        "ad_sdk_name": _name_column([network.sdk_name for network in game.ads.networks], block.events.network, is_ad),
        "ad_type": _name_column(list(game.ads.formats), ad.format[block.events.round], is_ad),
        "ad_action": _name_column([AD_ACTIONS.get(each, "") for each in EventSlot], slot, is_ad),
    }


def _impression_columns(block: PlayedBlock, game: GameProfile) -> dict[str, Names]:
    """Return the columns that only `impression` events have."""
    ad, ads, round_ = block.money.ad, game.ads, block.events.round
    shown = block.events.slot == EventSlot.IMPRESSION
    formats = [VENDOR_FORMATS[ads.vendor][name] for name in ads.formats]
    return {
        "ilrd_sdk_vendor": _name_column([ads.vendor], np.zeros_like(round_), shown),
        "ilrd_adunit_name": _name_column([unit.unit for unit in ads.formats.values()], ad.format[round_], shown),
        "ilrd_network_name": _name_column(
            [network.reported_name for network in ads.networks], ad.network[round_], shown & ~ad.is_unnamed[round_]
        ),
        "ilrd_adunit_format": _name_column(formats, ad.format[round_], shown),
        "ilrd_currency": _name_column([ads.currency], np.zeros_like(round_), shown),
    }


def _prices(block: PlayedBlock, game: GameProfile, scenario: Scenario) -> Numbers:
    """Return the prices of purchases, in hundredths of the player's currency."""
    bought = block.events.slot == EventSlot.BUSINESS
    prices = np.array([[item.price[name] for name in _currencies(game, scenario)] for item in game.purchases.items])
    country = block.players.country[block.sessions.player][block.events.session]
    return Numbers(prices[block.money.item[block.events.round], country], bought)


def _currencies(game: GameProfile, scenario: Scenario) -> list[str]:
    """Return the currency of each country of *game*."""
    return [scenario.country(code).currency for code in game.countries]


def texts_of(ids: Texts) -> pa.StringArray:
    """Return *ids* as an Arrow array that shares their memory."""
    width = ids.dtype.itemsize
    ends = np.arange(len(ids) + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends), pa.py_buffer(ids))


def _id_column(codes: Ints, ids: Texts) -> pa.DictionaryArray:
    """Return a dictionary column of ids[codes]."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), texts_of(ids))


def _place_values(values: pa.Array, has: Flags) -> pa.Array:
    """Place one of *values* at each element that *has* one, and null elsewhere.

    Without any values, all elements are null.
    """
    if not len(values):
        return pa.nulls(len(has), values.type)
    return values.take(pa.array(np.cumsum(has) - 1, mask=~has))


def _name_column(names: Sequence[str], codes: Ints, has: Flags | None = None) -> Names:
    """Return names[codes] where it *has* one (by default everywhere), else null.

    Equal names share one entry.
    """
    distinct = list(dict.fromkeys(names))
    if len(distinct) != len(names):
        codes = np.array([distinct.index(name) for name in names])[codes]
    return Names(distinct, codes, np.ones(len(codes), dtype=np.bool_) if has is None else has)


def _null_mask(has: Flags) -> Flags | None:
    """Return the mask of nulls that Arrow expects, or None if there are none."""
    return None if has.all() else ~has
