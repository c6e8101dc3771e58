"""The columns of the ledger, and the block of events they are taken from.

Columns come from the arrays the events were written from, never from the JSON: a fault in writing shows up as a
difference between the ledger and the service.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from gamelens.simulator.arms import arms_of
from gamelens.simulator.behaviour import SEVERITIES, Block, Slot
from gamelens.simulator.impressions import VENDOR_FORMATS
from gamelens.simulator.installs import publishers_of
from gamelens.simulator.payload import AD_ACTIONS, Ids, Texts
from gamelens.simulator.players import Flags, Ints
from gamelens.simulator.scenario import Scenario
from gamelens.simulator.traits import Game

_NAME: Final = pa.dictionary(pa.int32(), pa.string())

SCHEMA: Final = pa.schema(
    {
        "game_id": _NAME,
        "user_id": _NAME,
        "session_id": _NAME,
        "event_uuid": pa.string(),
        "client_ts": pa.int64(),  # epoch seconds
        "category": _NAME,
        "country_code": _NAME,
        "platform": _NAME,
        "build": _NAME,
        "ad_sdk_name": _NAME,
        "ad_type": _NAME,
        "ad_action": _NAME,
        "ilrd_sdk_vendor": _NAME,
        "ilrd_adunit_name": _NAME,
        "ilrd_network_name": _NAME,
        "ilrd_adunit_format": _NAME,
        "ilrd_id": pa.string(),  # the vendor's id of the impression, where it gives one
        "ilrd_nano": pa.int64(),  # impression revenue in 1e-9 of ilrd_currency
        "ilrd_currency": _NAME,
        "amount": pa.int64(),  # purchase, hundredths of currency
        "currency": _NAME,
        "length": pa.int64(),  # of a session that ended, seconds
        "severity": _NAME,
        "ab_id": _NAME,
        "ab_variant_id": _NAME,
        "install_publisher": _NAME,
        "sent_as": _NAME,  # what was done to it on the way, on purpose
        "verdict": _NAME,  # why it does not count
        "errors": pa.string(),  # owed by the collector: error_type and path, parted by semicolons; or a status
    }
)
"""One row an event, in the order sent; a value the event does not have is null.

An event without a verdict counts; one without a client_ts is from when it arrives.
"""

CATEGORIES: Final[dict[Slot, str]] = {
    Slot.USER: "user",
    Slot.DESIGN: "design",
    Slot.START: "progression",
    Slot.FINISH: "progression",
    Slot.RESOURCE: "resource",
    Slot.GRANT: "resource",
    Slot.BUSINESS: "business",
    Slot.IMPRESSION: "impression",
    Slot.ERROR: "error",
    Slot.SESSION_END: "session_end",
    **dict.fromkeys(AD_ACTIONS, "ads"),
}


def facts_of(block: Block, ids: Ids, *, game: Game, game_id: str, scenario: Scenario) -> pa.Table:
    """The events of *block* as rows of `SCHEMA`."""
    events, sessions, players = block.events, block.sessions, block.players
    player = sessions.player[events.session]
    country = players.country[player]
    everywhere = np.ones(len(events.slot), dtype=np.bool_)
    columns = {
        "game_id": _names([game_id], np.zeros_like(events.slot), everywhere),
        "user_id": _names(texts_of(ids.user), player, everywhere),
        "session_id": _names(texts_of(ids.session), events.session, everywhere),
        "event_uuid": texts_of(ids.event),
        "client_ts": pa.array(events.ts_s),
        "category": _names([CATEGORIES[slot] for slot in Slot], events.slot, everywhere),
        "country_code": _names(list(game.countries), country, everywhere),
        "platform": _names(list(game.platforms), players.platform[player], everywhere),
        "build": _names([build.name for build in game.builds], sessions.build[events.session], everywhere),
        **_origin_columns(block, player, game, scenario),
        **_ad_columns(block, game),
        **_impression_columns(block, ids, game),
        **_purchase_columns(block, game, [scenario.country(code).currency for code in game.countries], country),
        "length": _numbers(sessions.length_s[events.session], events.slot == Slot.SESSION_END),
        "severity": _names(SEVERITIES, block.rounds.severity[events.round], events.slot == Slot.ERROR),
        **{name: pa.nulls(len(events.slot), SCHEMA.field(name).type) for name in ("sent_as", "verdict", "errors")},
    }
    return pa.table({name: columns[name] for name in SCHEMA.names}, schema=SCHEMA)


def _origin_columns(block: Block, player: Ints, game: Game, scenario: Scenario) -> dict[str, Any]:
    """The variant a player is in and who brought him, on each of his events."""
    arms, arm = arms_of(game, scenario=scenario), block.players.arm[player]
    publisher = block.players.publisher[player]
    return {
        "ab_id": _names([each.experiment.id for each in arms], arm, arm >= 0),
        "ab_variant_id": _names([each.variant.id for each in arms], arm, arm >= 0),
        "install_publisher": _names(publishers_of(game, scenario=scenario), publisher, publisher >= 0),
    }


def _ad_columns(block: Block, game: Game) -> dict[str, Any]:
    slot, ad = block.events.slot, block.money.ad
    is_ad = np.isin(slot, list(AD_ACTIONS))
    return {
        "ad_sdk_name": _names([network.sdk_name for network in game.ads.networks], block.events.network, is_ad),
        "ad_type": _names(list(game.ads.formats), ad.format[block.events.round], is_ad),
        "ad_action": _names([AD_ACTIONS.get(each, "") for each in Slot], slot, is_ad),
    }


def _impression_columns(block: Block, ids: Ids, game: Game) -> dict[str, Any]:
    ad, ads, round_ = block.money.ad, game.ads, block.events.round
    shown = block.events.slot == Slot.IMPRESSION
    formats = [VENDOR_FORMATS[ads.vendor][name] for name in ads.formats]
    return {
        "ilrd_sdk_vendor": _names([ads.vendor], np.zeros_like(round_), shown),
        "ilrd_adunit_name": _names([unit.unit for unit in ads.formats.values()], ad.format[round_], shown),
        "ilrd_network_name": _names(
            [network.reported_name for network in ads.networks], ad.network[round_], shown & ~ad.is_unnamed[round_]
        ),
        "ilrd_adunit_format": _names(formats, ad.format[round_], shown),
        "ilrd_id": spread(texts_of(ids.impression), shown),
        "ilrd_nano": _numbers(ad.micros[round_] * 1000, shown),
        "ilrd_currency": _names([ads.currency], np.zeros_like(round_), shown),
    }


def _purchase_columns(block: Block, game: Game, currencies: list[str], country: Ints) -> dict[str, Any]:
    bought = block.events.slot == Slot.BUSINESS
    prices = np.array([[item.price[currency] for currency in currencies] for item in game.purchases.items])
    return {
        "amount": _numbers(prices[block.money.item[block.events.round], country], bought),
        "currency": _names(currencies, country, bought),
    }


def texts_of(ids: Texts) -> pa.StringArray:
    """*ids* as Arrow has them, not one of them copied."""
    width = ids.dtype.itemsize
    ends = np.arange(len(ids) + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(len(ids), pa.py_buffer(ends), pa.py_buffer(ids))


def spread(values: pa.Array, has: Flags) -> pa.Array:
    """*values*, of which there are none or one for each that *has*, at their places; null elsewhere."""
    if not len(values):
        return pa.nulls(len(has), values.type)
    return values.take(pa.array(np.cumsum(has) - 1, mask=~has))


def _names(names: Sequence[str] | pa.StringArray, codes: Ints, has: Flags) -> pa.DictionaryArray:
    """A dictionary column: names[codes] where *has*, else null; equal names share one entry."""
    if not isinstance(names, pa.Array):
        distinct = list(dict.fromkeys(names))
        if len(distinct) != len(names):
            codes = np.array([distinct.index(name) for name in names])[codes]
        names = pa.array(distinct, pa.string())
    mask = None if has.all() else ~has
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=mask), names)


def _numbers(values: Ints, has: Flags) -> pa.Array:
    return pa.array(values, pa.int64(), mask=~has)
