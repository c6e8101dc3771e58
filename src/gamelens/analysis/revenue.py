"""Purchases and ad revenue together: what a player is worth in a day.

Reads the frame of one query of several metrics at day granularity, such as
`lens.query(["revenue", "ilrd_revenue", "user_unique", "paying_users"], by="game", over=...)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pandas import DataFrame

from gamelens.analysis.tidy_frames import column_of, ratio, sum_over, with_receipts_of


def revenue_by_source(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Money from purchases and ads for each value of *by*.

    Columns: *by*, iap_revenue, ad_revenue, total_revenue (float64, USD), ads_share (float64, 0 to 1, NA without money).
    """
    names = {column_of(frame, "revenue", "sum"): "iap_revenue", column_of(frame, "ilrd_revenue", "sum"): "ad_revenue"}
    made = sum_over(frame, by, names).rename(columns=names)
    made["total_revenue"] = made["iap_revenue"] + made["ad_revenue"]
    made["ads_share"] = ratio(made["ad_revenue"], made["total_revenue"])
    return with_receipts_of(made, frame)


def arpdau(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Money per daily active player, in its two parts; over several days the players of each day count.

    Columns: *by*, player_days (Int64), iap_arpdau, ad_arpdau, arpdau (float64, USD per player and day, NA without
    players).
    """
    players = column_of(frame, "user_unique", "user_unique")
    made, money = sum_over(frame, by, [players]).rename(columns={players: "player_days"}), revenue_by_source(frame, by)
    made["iap_arpdau"] = ratio(money["iap_revenue"], made["player_days"])
    made["ad_arpdau"] = ratio(money["ad_revenue"], made["player_days"])
    made["arpdau"] = made["iap_arpdau"] + made["ad_arpdau"]
    return with_receipts_of(made, frame)


def payer_share(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Share of active players who paid; over several days the share on a typical day, weighted by players.

    Columns: *by*, player_days, paying_player_days (Int64), payer_share (float64, 0 to 1, NA without players).
    """
    names = {
        column_of(frame, "user_unique", "user_unique"): "player_days",
        column_of(frame, "paying_users", "paying_users"): "paying_player_days",
    }
    made = sum_over(frame, by, names).rename(columns=names)
    made["payer_share"] = ratio(made["paying_player_days"], made["player_days"])
    return with_receipts_of(made, frame)


def arppu(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Purchases per player who paid; over several days the payers of each day count, so it is per payer and day.

    Asked with every="all", it is per payer of the interval. Ad revenue is nobody's in particular and stays out.

    Columns: *by*, paying_player_days (Int64), iap_revenue (float64, USD), arppu (float64, USD per payer and day, NA
    where nobody paid).
    """
    names = {
        column_of(frame, "paying_users", "paying_users"): "paying_player_days",
        column_of(frame, "revenue", "sum"): "iap_revenue",
    }
    made = sum_over(frame, by, names).rename(columns=names)
    made["arppu"] = ratio(made["iap_revenue"], made["paying_player_days"])
    return with_receipts_of(made, frame)
