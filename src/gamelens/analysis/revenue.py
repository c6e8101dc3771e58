"""Purchases and ad revenue together: the worth of a player's day.

The functions read the frame of one query of several metrics at day granularity, such as
`lens.query(["revenue", "ilrd_revenue", "user_unique", "paying_users"], by="game", over=...)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pandas import DataFrame

from gamelens._text import format_number
from gamelens.analysis.ads.rate_claims import day_rates, leader_claim, level_claim
from gamelens.analysis.claims import Claim
from gamelens.analysis.tidy_frames import display_values, metric_sums, ratio, with_receipts_of
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


@requires(frame=FrameRequirements(metrics=("revenue", "ilrd_revenue")))
def source_claims(frame: DataFrame, by: str = "game") -> list[Claim]:
    """Return the share of ads in all income, and the value of *by* that depends on them most.

    kind "share of ads"; size is the share. Income is counted, not estimated, so the claims have no interval: few payers
    bring most of the purchases, and another month may have others.
    """
    both = revenue_by_source(frame).iloc[0]
    if not both["total_revenue"] > 0:
        text = "There was no income in this period."
        return [Claim(kind="share of ads", direction="unknown", unit="share", text=text)]
    share, total = format_number(both["ads_share"], "share"), format_number(both["total_revenue"], "money")
    text = f"Ads are {share} of all income, which is {total}."
    claims = [Claim(kind="share of ads", direction="unknown", size=float(both["ads_share"]), unit="share", text=text)]
    rows = revenue_by_source(frame, by)
    rows = rows[rows["total_revenue"] > 0].sort_values("ads_share", ascending=False)
    if len(rows) < 2:
        return claims
    top, last = rows.iloc[0], rows.iloc[-1]
    first_name, *_, last_name = display_values(rows[by])
    most, least = (format_number(row["ads_share"], "share") for row in (top, last))
    text = f"Their share is largest in {first_name}, {most}, and smallest in {last_name}, {least}."
    kind, size = f"share of ads by {by}", float(top["ads_share"])
    return [*claims, Claim(kind=kind, subject={by: first_name}, direction="higher", size=size, unit="share", text=text)]


@requires(
    frame=FrameRequirements(metrics=("revenue", "ilrd_revenue", "user_unique"), every=("day",), counts_players=True)
)
def arpdau_claims(frame: DataFrame, by: str = "game") -> list[Claim]:
    """Return what a player's day is worth, and the value of *by* in which it is worth most.

    kind "ARPDAU"; sizes are dollars, and the multiple of the next value. The intervals come from the differences
    between days: few payers bring most of the purchases, so they are wide.
    """
    money = metric_sums(
        frame,
        ["timestamp", by],
        iap=("revenue", "sum"),
        ads=("ilrd_revenue", "sum"),
        players=("user_unique", "user_unique"),
    )
    money["income"] = money["iap"].fillna(0.0) + money["ads"].fillna(0.0)
    otherwise = "No players were active in this period."
    whole, by_value = (day_rates(money, split, "income", "players", "money") for split in (None, by))
    if not whole:
        return [Claim(kind="ARPDAU", direction="unknown", unit="USD", text=otherwise)]
    return [
        level_claim(whole, "ARPDAU", "With purchases, a player's day is worth {rate}.", unit="USD"),
        leader_claim(by_value, by, f"ARPDAU by {by}", "It is worth most in {name}, {rate}"),
    ]
