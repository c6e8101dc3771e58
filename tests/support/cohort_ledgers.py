"""The ledger of a scenario by install day and day, its players living on past its last day.

Players install as they do in the shipped scenario and live on: the first days are what an analyst would have seen, the
later ones are the truth that a projection is held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final, NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pandas import DataFrame

from gamelens.simulator import Scenario, load_scenario
from gamelens.simulator.events.event_columns import ledger_rows_of
from gamelens.simulator.output.play import block_tasks, play_task
from gamelens.simulator.population.behaviour import PlayedBlock
from gamelens.wire.currencies import USD_PER_UNIT
from support.retention_frames import FIRST_DAY, frame_of

BEGINS: Final = date(2026, 11, 1)
DAY_S: Final = 86_400


class CohortLedger(NamedTuple):
    """Sums over the events of one game, each of shape (install days, days)."""

    players: NDArray[np.float64]
    iap_usd: NDArray[np.float64]
    ad_usd: NDArray[np.float64]

    def value_by_age(self, first: int, until: int, last_age: int) -> NDArray[np.float64]:
        """Return the dollars that a player installed on days *first* to *until* brought up to each age."""
        by_age = [(self.iap_usd + self.ad_usd)[day, day : day + last_age + 1] for day in range(first, until)]
        total = np.cumsum(np.sum(by_age, axis=0))
        return total / float(np.diagonal(self.players)[first:until].sum())

    def retention_frame(self, ages: Sequence[int], first: int, until: int) -> DataFrame:
        """Return the answer to `retention()` for the install days *first* to *until*, asked on day *until*."""
        days = range(first, until)
        seen = np.pad(self.players[:, :until], ((0, 0), (0, max(ages))))
        counts = np.array([[seen[day, day + age] for age in ages] for day in days])
        frame = frame_of(np.diagonal(self.players)[first:until].astype(int).tolist(), counts, ages, until=until - first)
        frame["timestamp"] += pd.Timedelta(days=first)
        return frame.drop(columns="game")

    def money_frame(self, first: int, until: int) -> DataFrame:
        """Return the answer to revenue, ilrd_revenue and user_unique by installed_on, for days *first* to *until*."""
        installed, day = np.nonzero(self.players)
        is_inside = (day >= first) & (day < until)
        installed, day = installed[is_inside], day[is_inside]
        names = (FIRST_DAY + pd.to_timedelta(np.arange(len(self.players)), unit="D")).strftime("%Y-%m-%d")
        return DataFrame(
            {
                "timestamp": (FIRST_DAY + pd.to_timedelta(day, unit="D")).astype("datetime64[us, UTC]"),
                "installed_on": pd.Categorical.from_codes(installed, categories=names),
                "revenue": self.iap_usd[installed, day],
                "ilrd_revenue": self.ad_usd[installed, day],
                "user_unique": pd.array(self.players[installed, day].astype("int64"), dtype="Int64"),
            }
        )


def lived_on(name: str, *, seed: int, lives_on: int = 180, players: int | None = None) -> Scenario:
    """Return the shipped scenario *name*, *lives_on* days longer and without further installs."""
    scenario = load_scenario(name, seed=seed, players=players)
    install_days = scenario.install_days or scenario.days
    return msgspec.structs.replace(scenario, days=scenario.days + lives_on, install_days=install_days)


def cohort_ledgers(name: str, *, seed: int, lives_on: int = 180, players: int | None = None) -> dict[str, CohortLedger]:
    """Play a scenario whose players live on, and return the sums of each game."""
    scenario = lived_on(name, seed=seed, lives_on=lives_on, players=players)
    sums: dict[str, CohortLedger] = {}
    for task in block_tasks(scenario):
        block, ids = play_task(scenario, BEGINS, task)
        game = scenario.games[task.game]
        rows = ledger_rows_of(block, ids, game=game, game_id=game.title, scenario=scenario)
        more = _sums_of(block, rows, scenario)
        sums[game.title] = CohortLedger(*map(np.add, sums[game.title], more)) if game.title in sums else more
    return sums


def _sums_of(block: PlayedBlock, rows: pa.Table, scenario: Scenario) -> CohortLedger:
    """Return the sums over the events of one block, which are *rows* of a ledger."""
    first_day, install_day = (BEGINS - date(1970, 1, 1)).days, block.players.install_day
    player, day = block.sessions.player[block.events.session], block.events.ts_s // DAY_S - first_day
    shape = scenario.install_days or scenario.days, scenario.days
    cell = install_day[player] * scenario.days + day
    is_new = np.zeros((len(install_day), scenario.days))
    is_new[player, day] = 1
    players = np.zeros(shape)
    np.add.at(players, install_day, is_new)
    money: list[NDArray[np.float64]] = []
    for number, currency in (("amount", "currency"), ("ilrd_nano", "ilrd_currency")):
        has = rows[number].is_valid().to_numpy()
        (codes,) = rows[currency].chunks
        rates = np.array([float(USD_PER_UNIT[code]) for code in codes.dictionary.to_pylist()])
        scale = 1e-2 if number == "amount" else 1e-9
        usd = rows[number].drop_null().to_numpy() * scale * rates[codes.indices.drop_null().to_numpy()]
        money.append(np.bincount(cell[has], usd, shape[0] * shape[1]).reshape(shape).astype("float64"))
    return CohortLedger(players, *money)
