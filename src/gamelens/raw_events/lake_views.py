"""The views of `lake.sql`: events, players, sessions, and one for each kind of event.

Times are UTC. Repeated events are not in them (Wire 4.8, Repeated events). Amounts are converted with the rates of
`wire.currencies`, as the metrics are.
"""

from __future__ import annotations

from typing import Final

from gamelens.wire.dimensions import Category, dimensions_of_category

_PARTS: Final = ", ".join(
    f"nullif(split_part(event_id, ':', {part}), '') AS event_id_{part:02d}" for part in range(1, 6)
)

_COMMON: Final = ("game_id", "ts", "day", "user_id", "session_id", "country_code", "platform", "build")
_NETWORKS: Final = ("ilrd_sdk_vendor", "ilrd_network_name")  # come first, in this order


def _of_category(category: Category, *others: str) -> str:
    """Return the statement of the events of *category*: common columns, its dimensions, *others*."""
    own = dimensions_of_category(category)
    own = (*(name for name in _NETWORKS if name in own), *(name for name in own if name not in _NETWORKS))
    rates = " LEFT JOIN rates USING (currency)" if "currency" in others else ""
    columns = ", ".join((*_COMMON, *own, *others))
    return f"SELECT {columns} FROM lake_events{rates} WHERE category = '{category}'"  # noqa: S608


VIEWS: Final[dict[str, str]] = {
    "events": f"""
        SELECT lake_events.* EXCLUDE (seq, money, currency, ilrd_id), {_PARTS}, seq AS arrival,
               CASE category WHEN 'business' THEN money * scaled / 100 / 1e9
                   WHEN 'impression' THEN money / 1e9 * scaled / 1e9 END AS usd
        FROM lake_events LEFT JOIN rates USING (currency)""",  # noqa: S608
    "players": """
        WITH installed AS (
            FROM lake_installs ANTI JOIN lake_installs_moved USING (game_id, user_id)
            UNION ALL BY NAME FROM lake_installs_moved
        ), paid AS (
            FROM lake_payments ANTI JOIN lake_payments_moved USING (game_id, user_id)
            UNION ALL BY NAME FROM lake_payments_moved
        ), stated AS (
            SELECT game_id, user_id, min(ts) AS ts FROM lake_stated_installs GROUP BY game_id, user_id
        )
        SELECT installed.game_id, installed.user_id, installed.ts AS installed_at,
               stated.ts AS stated_installed_at, installed.country_code,
               installed.platform, installed.build AS first_build, installed.install_publisher, installed.ab_id,
               installed.ab_variant_id, paid.ts AS first_paid_at
        FROM installed LEFT JOIN paid USING (game_id, user_id) LEFT JOIN stated USING (game_id, user_id)""",
    "sessions": """
        SELECT game_id, user_id, session_id, min(ts) AS started_at, max(ts) AS last_event_at, count(*) AS events,
               max(length) AS length, arg_min(country_code, ts) AS country_code, arg_min(platform, ts) AS platform,
               arg_min(build, ts) AS build
        FROM lake_events WHERE session_id IS NOT NULL GROUP BY game_id, user_id, session_id""",
    "purchases": _of_category("business", "currency", "money / 100 AS amount", "money * scaled / 100 / 1e9 AS usd"),
    "ads": _of_category("ads"),
    "impressions": _of_category("impression", "currency", "money / 1e9 AS amount", "money / 1e9 * scaled / 1e9 AS usd"),
    "session_ends": _of_category("session_end", "length"),
    "errors": _of_category("error"),
}
"""The statement of each view, by name."""

MEANINGS: Final[dict[str, str]] = {
    "ts": "time of the event, UTC",
    "day": "its day, UTC",
    "arrived_at": "time at which it arrived, UTC; null where it is not known",
    "installed_at": "time of the first event of the player, or of an earlier install that an export states",
    "stated_installed_at": "time of the install that an export states, null without one",
    "first_paid_at": "time of the first purchase, null without one",
    "first_build": "build of the install: of the first event, or what an export states of an earlier install",
    "started_at": "time of the first event of the session",
    "last_event_at": "time of its last event",
    "length": "seconds, of a session that ended",
    "amount": "in the currency beside it",
    "usd": "US dollars, at the fixed rates of the lake",
    "events": "number of events",
    "category": "kind of the event",
    "event_id": "of a business, design, progression or resource event; its parts are event_id_01 to event_id_05",
    "event_id_01": "first part of event_id; of a progression event its status",
    "arrival": "order of arrival; orders events of the same second",
}
"""Meanings of columns whose name does not say enough."""
