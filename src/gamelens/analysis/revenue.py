"""Purchases and ad revenue together: the worth of a player's day.

The functions read the frame of one query of several metrics at day granularity, such as
`lens.query(["revenue", "ilrd_revenue", "user_unique", "paying_users"], by="game", over=...)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pandas import DataFrame

from gamelens.analysis.tidy_frames import metric_sums, ratio, with_receipts_of
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires


@requires(frame=FrameRequirements(metrics=("revenue", "ilrd_revenue")))
def revenue_by_source(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Return revenue from purchases and from ads for each value of *by*.

    Columns: *by*, iap_revenue, ad_revenue, total_revenue (float64, USD), ads_share (float64, 0 to 1, NA without
    revenue).
    """
    result = metric_sums(frame, by, iap_revenue=("revenue", "sum"), ad_revenue=("ilrd_revenue", "sum"))
    result["total_revenue"] = result["iap_revenue"] + result["ad_revenue"]
    result["ads_share"] = ratio(result["ad_revenue"], result["total_revenue"])
    return with_receipts_of(result, frame)


@requires(
    frame=FrameRequirements(metrics=("revenue", "ilrd_revenue", "user_unique"), every=("day",), counts_players=True)
)
def arpdau(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Return revenue per daily active player for each value of *by*, in its two parts.

    Over several days a player counts once for each day of activity.

    Columns: *by*, player_days (Int64), iap_arpdau, ad_arpdau, arpdau (float64, USD per player and day, NA without
    players).
    """
    result = metric_sums(frame, by, player_days=("user_unique", "user_unique"))
    money = revenue_by_source(frame, by)
    result["iap_arpdau"] = ratio(money["iap_revenue"], result["player_days"])
    result["ad_arpdau"] = ratio(money["ad_revenue"], result["player_days"])
    result["arpdau"] = result["iap_arpdau"] + result["ad_arpdau"]
    return with_receipts_of(result, frame)


@requires(frame=FrameRequirements(metrics=("user_unique", "paying_users"), every=("day",), counts_players=True))
def payer_share(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Return the share of active players who paid, for each value of *by*.

    Over several days it is the share on a typical day, weighted by players.

    Columns: *by*, player_days, paying_player_days (Int64), payer_share (float64, 0 to 1, NA without players).
    """
    result = metric_sums(
        frame,
        by,
        player_days=("user_unique", "user_unique"),
        paying_player_days=("paying_users", "paying_users"),
    )
    result["payer_share"] = ratio(result["paying_player_days"], result["player_days"])
    return with_receipts_of(result, frame)


@requires(frame=FrameRequirements(metrics=("paying_users", "revenue"), every=("day", "all"), counts_players=True))
def arppu(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Return purchase revenue per paying player for each value of *by*.

    Over several days a payer counts once for each day with a purchase, so the result is per payer and day. Of a query
    with every="all" it is per payer of the interval. Ad revenue belongs to no payer and is left out.

    Columns: *by*, paying_player_days (Int64), iap_revenue (float64, USD), arppu (float64, USD per payer and day, NA
    without payers).
    """
    result = metric_sums(frame, by, paying_player_days=("paying_users", "paying_users"), iap_revenue=("revenue", "sum"))
    result["arppu"] = ratio(result["iap_revenue"], result["paying_player_days"])
    return with_receipts_of(result, frame)
