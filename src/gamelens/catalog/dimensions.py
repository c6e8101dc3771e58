"""The twenty dimensions, in the order the service lists them (Metrics, Dimension; public-facts 3.5)."""

from __future__ import annotations

from typing import Final, Literal

import msgspec


class Dimension(msgspec.Struct, frozen=True):
    """One dimension.

    *level* says who has the value: an event, its player, or only ad (`ads` events) or ilrd (`impression` events).
    """

    name: str
    level: Literal["event", "player", "ad", "ilrd"]
    meaning: str


DIMENSIONS: Final[dict[str, Dimension]] = {
    dimension.name: dimension
    for dimension in (
        Dimension("game_id", "event", "id of the game"),
        Dimension("build", "event", "build that sent the event"),
        Dimension("first_build", "player", "build of the install event"),
        Dimension("category", "event", "category of the event"),
        Dimension("country_code", "event", "two letters; decided for each event"),
        Dimension("platform", "event", "platform that sent the event"),
        Dimension("installed_on", "player", "install day, YYYY-MM-DD"),
        Dimension("is_paying", "player", '"true" from the first purchase on, else "false"'),
        Dimension("is_converting", "player", '"true" on the day of the first purchase, else "false"'),
        Dimension("ad_sdk_name", "ad", "ad SDK that showed the ad"),
        Dimension("ad_type", "ad", "format of the ad"),
        Dimension("ad_action", "ad", "what happened to the ad"),
        Dimension("ilrd_sdk_vendor", "ilrd", "mediation SDK that reported the impression"),
        Dimension("ilrd_adunit_name", "ilrd", "ad unit of the impression"),
        Dimension("ilrd_network_name", "ilrd", "network that filled the impression; may be null"),
        Dimension("ilrd_adunit_format", "ilrd", "format of the impression"),
        Dimension("install_publisher", "event", "publisher that brought the install"),
        Dimension("ab_id", "event", "experiment"),
        Dimension("ab_variant_id", "event", "variant of the experiment"),
        Dimension("severity", "event", "severity of an error event"),
    )
}
