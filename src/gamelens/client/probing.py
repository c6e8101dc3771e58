"""How far above its guarantee a service can be asked: what `pace="adaptive"` finds out."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from gamelens.wire.limits import REQUESTS_PER_SECOND

ANSWERS_PER_SLOT: Final = 3
MOST_SLOTS: Final = 50  # Our choice: ten nodes' worth
HOLD_S: Final = 60.0
MEMORY_S: Final = 10.0


class Probe:
    """Counts answers and refusals (429) and says how many slots are open beyond the guarantee.

    Limits are guaranteed minimums: several nodes serve, and each limits alone (Metrics, Limits 1). So:

    1. It starts at the guarantee. Three answers open one more slot, as long as requests wait for one.
    2. A refusal while the service has lately answered more requests of one second than the guarantee: there are
       several nodes, and this request drew a full one. One slot is closed.
    3. A refusal while it has not: one node serves. Back to the guarantee, and no probing for a minute.

    Requests come to nodes at random, so some find a full one long before all are full. With four nodes and three times
    the guarantee that is one in six to one in sixteen, with four times one in four to one in seven, as they are spread
    over the second or come together. To fall back far at each, as to half, gives 2.0 to 2.4 times the guarantee (300
    requests, simulated); rules 1 and 2, which balance where one in four is refused, give 2.9 to 3.3. Each refused
    request waits as long as the service says and asks again.

    What is found out is about the moment and belongs to one process: a refusal tells the one who probed, and clients
    that keep to the guarantee keep the slots of the guarantee.
    """

    def __init__(self) -> None:
        self._answers = 0
        self._sent: deque[float] = deque(maxlen=MOST_SLOTS)  # when the latest that were answered were sent
        self._holds_until = -math.inf
        self._several_until = -math.inf

    @property
    def extra(self) -> int:
        """Slots open beyond the guarantee."""
        return self._answers // ANSWERS_PER_SLOT

    def answered(self, sent_at: float, now: float, *, is_wanted: bool) -> None:
        """A request was answered; *is_wanted* says that others wait for a slot."""
        self._sent.append(sent_at)
        if sum(sent_at - 1.0 < other <= sent_at for other in self._sent) > REQUESTS_PER_SECOND:
            self._several_until = now + MEMORY_S
        if is_wanted and now >= self._holds_until:
            self._answers = min(self._answers + 1, (MOST_SLOTS - REQUESTS_PER_SECOND) * ANSWERS_PER_SLOT)

    def refused(self, now: float) -> None:
        """A request was refused."""
        if now < self._several_until:
            self._answers = max(self._answers - ANSWERS_PER_SLOT, 0)
        else:
            self._answers = 0
            self._holds_until = now + HOLD_S
