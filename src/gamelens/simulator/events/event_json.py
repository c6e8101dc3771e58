"""The events of a block as JSON, in three fragments: content, session and time.

Fragments are encoded by msgspec, once for each distinct value. Only whole numbers and UUIDs are formatted directly.
This is several times faster than encoding an object for each event. A test decodes every event with the rules of
`gamelens.wire.event_validator`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from gamelens.simulator.population.arrays import Ints
from gamelens.simulator.population.behaviour import DESIGN_IDS, SEVERITIES, TUTORIAL_ROUNDS, EventSlot, PlayedBlock
from gamelens.simulator.population.installs import arms_of, publishers_of
from gamelens.simulator.population.monetisation import FAIL_REASONS
from gamelens.simulator.population.players import DEVICES
from gamelens.simulator.population.session_times import CONNECTIONS
from gamelens.simulator.scenarios.game_profile import AdVendor, GameProfile
from gamelens.simulator.scenarios.scenario import Scenario

Texts = NDArray[np.bytes_]
"""Texts of one length in contiguous memory, which Arrow uses without a copy."""

SDK_VERSION: Final = "rest api v2"
Event = tuple[bytes, bytes, bytes]
"""JSON fragments of an event: content, session, and time with the separating comma."""
Fragments = NDArray[np.object_]
"""Events, shape (n, 3): the three fragments of each."""

_STAMP: Final = b',"client_ts":%10d,"event_uuid":"%36d"},' % (0, 0)
_STAMP_TS: Final = slice(13, 23)
_STAMP_UUID: Final = slice(len(_STAMP) - 39, len(_STAMP) - 3)

AD_ACTIONS: Final = {
    EventSlot.AD_REQUEST: "request",
    EventSlot.AD_FAILED: "failed_show",
    EventSlot.AD_SHOW: "show",
    EventSlot.AD_CLICK: "clicked",
    EventSlot.AD_REWARD: "reward_received",
}
MESSAGES: Final = (
    "asset bundle loaded from cache",
    "store connection restored",
    "frame budget exceeded while loading level",
    "NullReferenceException: Object reference not set to an instance of an object",
    "OutOfMemoryError while decoding texture atlas",
)
"""One message for each severity."""
VENDOR_FORMATS: Final[dict[AdVendor, dict[str, str]]] = {
    "max": {"rewarded_video": "REWARDED", "interstitial": "INTER", "banner": "BANNER"},
    "ironsource": {"rewarded_video": "rewarded_video", "interstitial": "interstitial", "banner": "banner"},
    "admob": {"rewarded_video": "REWARDED_VIDEO", "interstitial": "INTERSTITIAL", "banner": "BANNER"},
}
"""Name of each ad format, by vendor."""

VENDORS_WITH_ID: Final = ("ironsource",)
"""Vendors whose payload carries an id of the impression."""


@dataclass(frozen=True, eq=False, slots=True)
class BlockIds:
    """UUIDs of a block, lower case, as one array per kind. Without ids of the vendor there are no *impression* ids."""

    user: Texts
    session: Texts
    event: Texts
    impression: Texts


def draw_ids(block: PlayedBlock, *, game: GameProfile, rng: np.random.Generator) -> BlockIds:
    """Draw version-4 UUIDs for everything in *block*."""
    impressions = (
        np.count_nonzero(block.events.slot == EventSlot.IMPRESSION) if game.ads.vendor in VENDORS_WITH_ID else 0
    )
    counts = (len(block.players), len(block.sessions.day), len(block.events.slot), int(impressions))
    return BlockIds(*(draw_uuids(count, rng) for count in counts))


def encode_events(block: PlayedBlock, ids: BlockIds, *, game: GameProfile, scenario: Scenario) -> Fragments:
    """Encode the events in order, as fragments for `join_events`."""
    events = block.events
    fragments = np.empty((len(events.slot), 3), dtype=object)
    for slot, write in _WRITERS.items():
        positions = np.flatnonzero(events.slot == slot)
        if len(positions):
            fragments[positions, 0] = list(write(_SlotEvents(block, ids, game, scenario, positions)))
    heads = _session_heads(block, ids, game=game, scenario=scenario)
    fragments[:, 1] = np.array(heads, dtype=object)[events.session]
    # Times and ids are formatted into one text array. A time with fewer than ten digits is padded with spaces.
    text = np.tile(np.frombuffer(_STAMP, dtype=np.uint8), (len(events.ts_s), 1))
    moment, power = events.ts_s[:, None], 10 ** np.arange(9, -1, -1)
    text[:, _STAMP_TS] = np.where(moment < power, ord(" "), ord("0") + moment // power % 10)
    text[:, _STAMP_UUID] = ids.event.view(np.uint8).reshape(-1, 36)
    fragments[:, 2] = text.view(f"S{len(_STAMP)}").ravel()
    return fragments


def join_events(events: Fragments | Iterable[Event]) -> bytes:
    """Return a JSON array of *events*. There must be at least one."""
    fragments = [b"[", *(events.ravel().tolist() if isinstance(events, np.ndarray) else chain.from_iterable(events))]
    fragments[-1] = fragments[-1][:-1] + b"]"
    return b"".join(fragments)


@dataclass(frozen=True, eq=False, slots=True)
class _SlotEvents:
    """The events of one slot, by their *positions* in the block."""

    block: PlayedBlock
    ids: BlockIds
    game: GameProfile
    scenario: Scenario
    positions: Ints

    def rounds(self, *columns: Any) -> list[list[int]]:
        """Return columns of the rounds, for these events."""
        round_ = self.block.events.round[self.positions]
        return [column[round_].tolist() for column in columns]

    def countries(self) -> list[int]:
        """Return the positions in the game's countries."""
        block = self.block
        countries: list[int] = block.players.country[
            block.sessions.player[block.events.session[self.positions]]
        ].tolist()
        return countries

    def arms(self) -> list[int]:
        """Return the positions in the game's arms, or -1."""
        arms: list[int] = self.block.players.arm[
            self.block.sessions.player[self.block.events.session[self.positions]]
        ].tolist()
        return arms


def _opening(**fields: Any) -> bytes:
    """Return a JSON object without its closing brace."""
    return msgspec.json.encode(fields)[:-1]


@cache
def _level_opening(status: str, level: int) -> bytes:
    return _opening(category="progression", event_id=f"{status}:world{1 + (level - 1) // 20:02d}:level{level:03d}")


def _user(events: _SlotEvents) -> Iterable[bytes]:
    return repeat(_opening(category="user"), len(events.positions))


def _session_end(events: _SlotEvents) -> Iterable[bytes]:
    lengths = events.block.sessions.length_s[events.block.events.session[events.positions]].tolist()
    return (b'{"category":"session_end","length":%d' % length for length in lengths)


def _design(events: _SlotEvents) -> Iterable[bytes]:
    written = {i: _opening(category="design", event_id=name) for i, name in enumerate(DESIGN_IDS)}
    for step in range(1, TUTORIAL_ROUNDS + 1):
        written[-step] = _opening(category="design", event_id=f"tutorial:step_{step}", value=step)
    return map(written.__getitem__, *events.rounds(events.block.rounds.design))


def _start(events: _SlotEvents) -> Iterable[bytes]:
    return (_level_opening("Start", level) for level in events.rounds(events.block.rounds.level)[0])


def _finish(events: _SlotEvents) -> Iterable[bytes]:
    rounds = events.block.rounds
    columns = events.rounds(rounds.finish, rounds.level, rounds.attempt, rounds.score)
    for finish, level, attempt, score in zip(*columns, strict=True):
        if finish:
            yield b'%b,"attempt_num":%d,"score":%d' % (_level_opening("Complete", level), attempt, score)
        else:
            yield b'%b,"score":%d' % (_level_opening("Fail", level), score)


def _resource(events: _SlotEvents) -> Iterable[bytes]:
    economy = events.game.economy
    earned = _opening(category="resource", event_id=f"Source:{economy.currency}:{economy.source}")
    spent = _opening(category="resource", event_id=f"Sink:{economy.currency}:{economy.sink}")
    coins = events.rounds(events.block.rounds.coins)[0]
    return (b'%b,"amount":%d' % (earned if amount > 0 else spent, amount) for amount in coins)


def _grant(events: _SlotEvents) -> Iterable[bytes]:
    currency, items = events.game.economy.currency, events.game.purchases.items
    written = [_opening(category="resource", event_id=f"Source:{currency}:{item.id}") for item in items]
    granted = events.rounds(events.block.money.item, events.block.rounds.grant)
    return (b'%b,"amount":%d' % (written[item], amount) for item, amount in zip(*granted, strict=True))


def _business(events: _SlotEvents) -> Iterable[bytes]:
    currencies = [events.scenario.country(code).currency for code in events.game.countries]
    arms = arms_of(events.game, scenario=events.scenario)
    bought = events.rounds(events.block.money.item, events.block.money.transaction)
    for item, transaction, country, arm in zip(*bought, events.countries(), events.arms(), strict=True):
        sold, currency = events.game.purchases.items[item], currencies[country]
        usual = sold.price[currency]
        factor = arms[arm].variant.price if arm >= 0 else 1.0
        yield _opening(
            category="business",
            event_id=sold.id,
            amount=max(round(usual * factor), 1),
            currency=currency,
            transaction_num=transaction,
            cart_type="shop",
        )


def _ad(slot: EventSlot) -> Callable[[_SlotEvents], Iterable[bytes]]:
    """Return a function that writes the `ads` events of one action."""

    def write(events: _SlotEvents) -> Iterable[bytes]:
        ad, ads = events.block.money.ad, events.game.ads
        units = list(ads.formats.items())

        @cache
        def opening(network: int, format_: int, placement: int, reason: int) -> bytes:
            name, unit = units[format_]
            fields = {
                "ad_sdk_name": ads.networks[network].sdk_name,
                "ad_placement": unit.placements[placement],
                "ad_type": name,
                "ad_action": AD_ACTIONS[slot],
            }
            failed = {"ad_fail_show_reason": FAIL_REASONS[reason]} if slot == EventSlot.AD_FAILED else {}
            return _opening(category="ads", **fields, **failed)

        network = events.block.events.network[events.positions].tolist()
        return map(opening, network, *events.rounds(ad.format, ad.placement, ad.fail_reason))

    return write


def _impression(events: _SlotEvents) -> Iterable[bytes]:
    """Return the `impression` events, with the impression_data of the vendor (Wire 3.6, Impression payloads)."""
    ad, ads = events.block.money.ad, events.game.ads
    units, countries = list(ads.formats.items()), list(events.game.countries)
    fields = _opening(category="impression", ad_network_name=ads.vendor, ad_network_version=ads.vendor_version)

    @cache
    def opening(network: int, format_: int, placement: int, country: int) -> bytes:
        """Return an event up to the id and revenue of the impression. Without its name *network* is -1."""
        name = ads.networks[network].reported_name if network >= 0 else None
        (kind, unit), code = units[format_], countries[country]
        vendor_format = VENDOR_FORMATS[ads.vendor][kind]
        data: dict[str, Any]
        match ads.vendor:
            case "max":
                data = {
                    "country": code,
                    "network_name": name,
                    "adunit_id": unit.unit,
                    "adunit_format": vendor_format,
                    "placement": unit.placements[placement],
                    "creative_id": f"{code.lower()}-{kind}",
                }
            case "ironsource":
                data = {
                    "ad_unit": vendor_format,
                    "ad_network": name,
                    "instance_name": unit.unit,
                    "country": code,
                    "placement": unit.placements[placement],
                    "precision": "BID",
                    "ab": "A",
                    "segment_name": "",
                    "encrypted_cpm": "",
                }
            case "admob":
                data = {
                    "adunit_id": unit.unit,
                    "currency": ads.currency,
                    "precision": 3,
                    "adunit_format": vendor_format,
                    "network_class_name": name,
                }
        return fields + b',"impression_data":' + _opening(**data)

    def tail(micros: int, auction_id: bytes) -> bytes:
        """Return the id, the revenue and the closing brace. Revenue is in USD, of admob in micros."""
        if ads.vendor == "admob":
            return b',"revenue":%d}' % micros
        whole, fraction = divmod(micros, 1_000_000)
        if ads.vendor == "ironsource":
            return b',"auction_id":"%b","revenue":%d.%06d}' % (auction_id, whole, fraction)
        return b',"revenue":%d.%06d}' % (whole, fraction)

    named = np.where(ad.is_unnamed, -1, ad.network)
    network, format_, placement, micros = events.rounds(named, ad.format, ad.placement, ad.micros)
    ids = events.ids.impression.tolist() or [b""] * len(events.positions)
    for *key, amount, auction in zip(network, format_, placement, events.countries(), micros, ids, strict=True):
        yield opening(*key) + tail(amount, auction)


def _error(events: _SlotEvents) -> Iterable[bytes]:
    written = [
        _opening(category="error", severity=severity, message=message)
        for severity, message in zip(SEVERITIES, MESSAGES, strict=True)
    ]
    return map(written.__getitem__, *events.rounds(events.block.rounds.severity))


_WRITERS: Final[dict[EventSlot, Callable[[_SlotEvents], Iterable[bytes]]]] = {
    EventSlot.USER: _user,
    EventSlot.DESIGN: _design,
    EventSlot.START: _start,
    EventSlot.FINISH: _finish,
    EventSlot.RESOURCE: _resource,
    EventSlot.BUSINESS: _business,
    EventSlot.GRANT: _grant,
    EventSlot.IMPRESSION: _impression,
    EventSlot.ERROR: _error,
    EventSlot.SESSION_END: _session_end,
    **{slot: _ad(slot) for slot in AD_ACTIONS},
}


def _session_heads(block: PlayedBlock, ids: BlockIds, *, game: GameProfile, scenario: Scenario) -> list[bytes]:
    """Return the fragment that all events of a session share, by session.

    It begins with the comma after the content.
    """
    player_heads = _player_heads(block, ids, game=game, scenario=scenario)
    builds = [msgspec.json.encode(build.name) for build in game.builds]
    connections = [name.encode() for name in CONNECTIONS]
    sessions = block.sessions
    columns = (sessions.player, sessions.number, sessions.build, sessions.connection)
    return [
        b',%b,"session_id":"%b","session_num":%d,"build":%b,"connection_type":"%b"'
        % (player_heads[player], uuid, number, builds[build], connections[connection])
        for uuid, player, number, build, connection in zip(
            ids.session.tolist(), *(column.tolist() for column in columns), strict=True
        )
    ]


def _player_heads(block: PlayedBlock, ids: BlockIds, *, game: GameProfile, scenario: Scenario) -> list[bytes]:
    """Return the part of the session fragment that depends on the player only."""
    publishers, arms = publishers_of(game, scenario=scenario), arms_of(game, scenario=scenario)
    platforms, countries = list(game.platforms), list(game.countries)
    players = block.players

    @cache
    def device_head(platform: int, device: int, country: int) -> bytes:
        manufacturer, model, os_version = DEVICES[platforms[platform]][device]
        fields = {
            "v": 2,
            "sdk_version": SDK_VERSION,
            "os_version": os_version,
            "manufacturer": manufacturer,
            "device": model,
            "platform": platforms[platform],
            "country_code": countries[country],
        }
        return msgspec.json.encode(fields)[1:-1]

    @cache
    def origin(publisher: int, arm: int) -> bytes:
        """Return the fields of variant and publisher, with the comma before them."""
        fields: dict[str, str] = {}
        if arm >= 0:
            fields |= {"ab_id": arms[arm].experiment.id, "ab_variant_id": arms[arm].variant.id}
        if publisher >= 0:
            fields["install_publisher"] = publishers[publisher]
        return b"," + msgspec.json.encode(fields)[1:-1] if fields else b""

    columns = (players.platform, players.device, players.country, players.publisher, players.arm)
    return [
        b'%b,"user_id":"%b"%b' % (device_head(*device), uuid, origin(publisher, arm))
        for uuid, *device, publisher, arm in zip(
            ids.user.tolist(), *(column.tolist() for column in columns), strict=True
        )
    ]


_HEX_DIGITS: Final = np.dtype("V8,V4,V4,V4,V12")
_WITH_HYPHENS: Final = np.dtype("V8,V1,V4,V1,V4,V1,V4,V1,V12")
"""The parts of a UUID in its digits and in its text, as fields `f0`, `f1` and so on."""


def draw_uuids(count: int, rng: np.random.Generator) -> Texts:
    """Draw *count* version-4 UUIDs as text."""
    raw = np.frombuffer(rng.bytes(16 * count), dtype=np.uint8).reshape(count, 16).copy()
    raw[:, 6] = raw[:, 6] & 0x0F | 0x40
    raw[:, 8] = raw[:, 8] & 0x3F | 0x80
    digits = np.frombuffer(raw.tobytes().hex().encode(), dtype=_HEX_DIGITS)
    text = np.full(36 * count, ord("-"), dtype=np.uint8)
    parts: NDArray[np.void] = text.view(_WITH_HYPHENS)
    for part in range(5):
        parts[f"f{2 * part}"] = digits[f"f{part}"]
    written: Texts = text.view("S36")
    return written
