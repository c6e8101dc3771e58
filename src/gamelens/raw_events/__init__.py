"""A lake of one's own: the numbers of the metrics service, and analyses of its events.

The room writes nothing. Open `lake_client` first.
"""

from typing import TYPE_CHECKING

from gamelens.errors import no_such_name
from gamelens.raw_events.active_players import active_players
from gamelens.raw_events.event_counts import LocalBucket, count_events
from gamelens.raw_events.funnels import funnel
from gamelens.raw_events.player_money import player_money
from gamelens.raw_events.session_paths import session_paths

__all__ = ["LocalBucket", "active_players", "count_events", "funnel", "player_money", "session_paths"]


if not TYPE_CHECKING:  # type checkers should find a name that does not exist
    __getattr__ = no_such_name(__name__, __all__)
