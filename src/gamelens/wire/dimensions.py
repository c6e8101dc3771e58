"""Every dimension, one row each, and the columns of a stored event.

A row says where the value of an event comes from, which tables of a lake have it as a column, and how exports call it.
Whatever reads, stores, simulates, counts or describes dimensions follows from the rows.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Category = Literal["ads", "business", "error", "impression", "session_end"]
TableName = Literal["slim", "cube", "member", "return"]
"""Kinds of tables that keep a dimension besides the events: small sums, all sums, memberships of players, returns."""


class Sent(msgspec.Struct, frozen=True):
    """The value is as the event was sent."""

    only: Category | None = None  # the only category of events that have it; None for any. It is null for the others
    field: str = ""  # field of the event; empty if it is called as the dimension


class Payload(msgspec.Struct, frozen=True):
    """The value is the first text among *fields* of the `impression_data` of an impression."""

    fields: tuple[str, ...]


class Own(msgspec.Struct, frozen=True):
    """The value is an expression of its own, which `sandbox.processing.staging` has."""


class OfPlayer(msgspec.Struct, frozen=True):
    """The value follows from the player's install or first purchase, and is not a column of an event."""

    first: Literal["install", "purchase"]


class Dimension(msgspec.Struct, frozen=True):
    """One dimension."""

    name: str
    source: Sent | Payload | Own | OfPlayer  # where its value comes from
    tables: frozenset[TableName]  # tables that have it as a column, besides the events
    typical: int  # usual number of values, for estimates
    meaning: str  # definition in a few words
    event_data: str | None = None  # its column in Event Data; None if that lacks it

    @property
    def only(self) -> Category | None:
        """The only category of events that have a value; None for any."""
        return "impression" if isinstance(self.source, Payload) else getattr(self.source, "only", None)

    @property
    def level(self) -> Literal["event", "player", "ad", "ilrd"]:
        """Owner of the value: the event, its player, or only `ads` (ad) or `impression` (ilrd) events."""
        if isinstance(self.source, OfPlayer):
            return "player"
        return "ad" if self.only == "ads" else "ilrd" if self.only == "impression" else "event"


_NONE: Final[frozenset[TableName]] = frozenset()
_CUBE: Final[frozenset[TableName]] = frozenset(("cube",))
_SUMS: Final[frozenset[TableName]] = frozenset(("slim", "cube"))
_MEMBER: Final[frozenset[TableName]] = frozenset(("member",))
_ALL: Final[frozenset[TableName]] = frozenset(("slim", "cube", "member", "return"))

DIMENSIONS: Final[dict[str, Dimension]] = {
    dimension.name: dimension
    for dimension in (
        Dimension("game_id", Own(), _ALL, 10, "id of the game"),
        Dimension("build", Sent(), _ALL, 20, "build that sent the event"),
        Dimension("first_build", OfPlayer("install"), _NONE, 20, "build of the install event"),
        Dimension("category", Sent(), _SUMS, 10, "category of the event"),
        Dimension("country_code", Own(), _ALL, 150, "two letters; decided for each event"),
        Dimension("platform", Sent(), _ALL, 4, "platform that sent the event"),
        Dimension("installed_on", OfPlayer("install"), _NONE, 365, "install day, YYYY-MM-DD"),
        Dimension("is_paying", OfPlayer("purchase"), _NONE, 2, '"true" from the first purchase on, else "false"'),
        Dimension(
            "is_converting", OfPlayer("purchase"), _NONE, 2, '"true" on the day of the first purchase, else "false"'
        ),
        Dimension("ad_sdk_name", Sent("ads"), _CUBE, 5, "ad SDK that showed the ad", "ad_sdk_name"),
        Dimension("ad_type", Sent("ads"), _CUBE, 6, "format of the ad", "ad_type"),
        Dimension("ad_action", Sent("ads"), _CUBE, 5, "what happened to the ad", "ad_action"),
        Dimension(
            "ilrd_sdk_vendor",
            Sent("impression", "ad_network_name"),
            _CUBE,
            4,
            "mediation SDK that reported the impression",
        ),
        Dimension(
            "ilrd_adunit_name",
            Payload(("adunit_name", "adunit_id", "instance_name")),
            _CUBE,
            20,
            "ad unit of the impression",
            "adunit_name",
        ),
        Dimension(
            "ilrd_network_name",
            Payload(("network_name", "ad_network", "demandSource", "network_class_name")),
            _CUBE,
            15,
            "network that filled the impression; may be null",
            "ad_network_name",
        ),
        Dimension(
            "ilrd_adunit_format",
            Payload(("adunit_format", "ad_unit", "placementType")),
            _CUBE,
            6,
            "format of the impression",
            "adunit_format",
        ),
        Dimension("install_publisher", Sent(), _MEMBER, 20, "publisher that brought the install"),
        Dimension("ab_id", Sent(), _MEMBER, 5, "experiment"),
        Dimension("ab_variant_id", Sent(), _MEMBER, 10, "variant of the experiment"),
        Dimension("severity", Sent("error"), _CUBE, 5, "severity of an error event", "severity"),
    )
}
"""All dimensions by name, in the order in which the service lists them."""

_FIRST: Final = (
    *("game_id", "country_code", "platform", "build", "category"),
    *("ad_sdk_name", "ad_type", "ad_action", "severity"),
)
EVENT_DIMENSIONS: Final = tuple(
    dict.fromkeys(
        (*_FIRST, *(name for name, dimension in DIMENSIONS.items() if not isinstance(dimension.source, OfPlayer)))
    )
)
"""Dimensions that are columns of an event, in the order of the lake."""

ValueKind = Literal["whole", "text", "time", "date"]
EVENT_COLUMNS: Final[dict[str, ValueKind]] = {
    "seq": "whole",  # the order of arrival
    "ts": "time",  # event time, UTC
    "day": "date",
    **dict.fromkeys(EVENT_DIMENSIONS, "text"),
    "user_id": "text",
    "session_id": "text",
    "event_uuid": "text",
    "ilrd_id": "text",  # identity of an impression: i + the vendor's id, else u + event_uuid, else s + seq
    "length": "whole",  # seconds, of a session that ended
    "money": "whole",  # hundredths of a purchase, billionths of an impression, in `currency`
    "currency": "text",
    "arrived_at": "time",  # UTC; null where it is not known
    "event_id": "text",
    "custom_01": "text",
    "custom_02": "text",
    "custom_03": "text",
    "device": "text",
    "os_version": "text",
}
"""Columns of a stored event with the kinds of their values, in the order of the lake."""


def dimensions_in_table(table: TableName) -> tuple[str, ...]:
    """Return the dimensions that are columns of *table*, in the order of the lake."""
    return tuple(name for name in EVENT_DIMENSIONS if table in DIMENSIONS[name].tables)


def dimensions_of_category(category: Category) -> tuple[str, ...]:
    """Return the dimensions that only events of *category* have, in the order of the lake."""
    return tuple(name for name in EVENT_DIMENSIONS if DIMENSIONS[name].only == category)
