"""A lake of one's own: the numbers of the metrics service, and analyses of its events.

The room writes nothing. Open `lake_client` first.
"""

from gamelens.raw_events.event_analyses import (
    LocalBucket,
    active_players,
    count_events,
    funnel,
    player_money,
    session_paths,
)

__all__ = ["LocalBucket", "active_players", "count_events", "funnel", "player_money", "session_paths"]
