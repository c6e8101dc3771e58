"""The dimensions of the service (Wire 4.10, Dimensions)."""

from __future__ import annotations

from typing import Final, Literal

import msgspec


class Dimension(msgspec.Struct, frozen=True):
    """One dimension.

    Attributes:
        name: name on the wire.
        level: owner of the value: the event, its player, or only `ads` (ad) or `impression` (ilrd) events.
        meaning: definition in a few words.
        typical: usual number of values, for estimates.
    """

    name: str
    level: Literal["event", "player", "ad", "ilrd"]
    meaning: str
    typical: int


DIMENSIONS: Final[dict[str, Dimension]] = {
    dimension.name: dimension
    for dimension in (
        Dimension("game_id", "event", "id of the game", 10),
        Dimension("build", "event", "build that sent the event", 20),
        Dimension("first_build", "player", "build of the install event", 20),
        Dimension("category", "event", "category of the event", 10),
        Dimension("country_code", "event", "two letters; decided for each event", 150),
        Dimension("platform", "event", "platform that sent the event", 4),
        Dimension("installed_on", "player", "install day, YYYY-MM-DD", 365),
        Dimension("is_paying", "player", '"true" from the first purchase on, else "false"', 2),
        Dimension("is_converting", "player", '"true" on the day of the first purchase, else "false"', 2),
        Dimension("ad_sdk_name", "ad", "ad SDK that showed the ad", 5),
        Dimension("ad_type", "ad", "format of the ad", 6),
        Dimension("ad_action", "ad", "what happened to the ad", 5),
        Dimension("ilrd_sdk_vendor", "ilrd", "mediation SDK that reported the impression", 4),
        Dimension("ilrd_adunit_name", "ilrd", "ad unit of the impression", 20),
        Dimension("ilrd_network_name", "ilrd", "network that filled the impression; may be null", 15),
        Dimension("ilrd_adunit_format", "ilrd", "format of the impression", 6),
        Dimension("install_publisher", "event", "publisher that brought the install", 20),
        Dimension("ab_id", "event", "experiment", 5),
        Dimension("ab_variant_id", "event", "variant of the experiment", 10),
        Dimension("severity", "event", "severity of an error event", 5),
    )
}
