"""A lake of one's own: the numbers of the metrics service, and analyses of its events.

The room writes nothing. Open `lake_client` first.
"""

from gamelens.raw_events.local_buckets import LocalBucket, count_events
from gamelens.raw_events.player_activity import active_players, session_paths
from gamelens.raw_events.player_funnels import funnel
from gamelens.raw_events.player_money import player_money

__all__ = ["LocalBucket", "active_players", "count_events", "funnel", "player_money", "session_paths"]
