"""Purchases and ad revenue together: the worth of a player's day.

The functions read the frame of one query of several metrics at day granularity, such as
`lens.query(["revenue", "ilrd_revenue", "user_unique", "paying_users"], by="game", over=...)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pandas import DataFrame

from gamelens.analysis.ads.day_rates import day_rates, lead_of, read_leader, read_level
from gamelens.analysis.claims.findings import Finding, reads
from gamelens.analysis.claims.leaders import LEAD
from gamelens.analysis.tidy_frames import column_of, display_values, metric_sums, ratio
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires
from gamelens.analysis.tidy_frames.returned_columns import FROM_DAYS, KEYS, between, named, returns


@requires(frame=FrameRequirements(metrics=("revenue", "ilrd_revenue")))
@returns(
    KEYS,
    "iap_revenue ad_revenue total_revenue",
    named(
        "ads_share", na="without revenue and where one of the two is negative, because more was credited than earned"
    ),
)
def revenue_by_source(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Return revenue from purchases and from ads for each value of *by*.

        income = lens.query(["revenue", "ilrd_revenue"], by=["game", "platform"], over="last 28 complete days")
        revenue.revenue_by_source(income, by=["game", "platform"])

    Income is counted, not estimated: few payers bring most of the purchases, and another month may have others.

    Claims: "share of ads" of all rows, "share of ads by" for one dimension.
    """
    result = metric_sums(frame, by, iap_revenue=("revenue", "sum"), ad_revenue=("ilrd_revenue", "sum"))
    result["total_revenue"] = result["iap_revenue"] + result["ad_revenue"]
    is_split = (result["iap_revenue"] >= 0) & (result["ad_revenue"] >= 0)
    result["ads_share"] = ratio(result["ad_revenue"], result["total_revenue"]).where(is_split)
    return result


@reads("revenue.revenue_by_source")
def _read_sources(result: DataFrame, by: str | list[str] | None) -> Iterator[Finding]:
    """Say how much of all income comes from ads, and where that is most and least."""
    purchases, ads = (float(result[name].sum()) for name in ("iap_revenue", "ad_revenue"))
    numbers = {"total_revenue": purchases + ads, "iap_revenue": purchases, "ad_revenue": ads}
    if min(purchases, ads) < 0:
        yield Finding(kind="share of ads", case="credited", unit="share", judged="counted", numbers=numbers)
    elif purchases + ads:
        share = ads / (purchases + ads)
        yield Finding(kind="share of ads", case="share", size=share, unit="share", judged="counted", numbers=numbers)
    else:
        yield Finding(kind="share of ads", case="no_income", unit="share")
    rows = result[result["ads_share"].notna()].sort_values("ads_share", ascending=False)
    if not isinstance(by, str) or len(rows) < 2:
        return
    names, shares = display_values(rows[by]).tolist(), rows["ads_share"].tolist()
    yield Finding(
        kind="share of ads by",
        case="extremes",
        subject={by: names[0]},
        direction="higher",
        size=shares[0],
        unit="share",
        judged="counted",
        numbers={"name": names[0], "least": names[-1], "least_share": shares[-1]},
    )


@requires(
    frame=FrameRequirements(metrics=("revenue", "ilrd_revenue", "user_unique"), every=("day",), counts_players=True)
)
@returns(
    KEYS,
    "player_days iap_arpdau ad_arpdau",
    between("arpdau", FROM_DAYS),
    named(
        "largest_day",
        about="by which the day that brought most exceeds its part",
        na="unless that makes the interval rough",
    ),
    lead_of("arpdau"),
)
def arpdau(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Return revenue per daily active player for each value of *by*, in its two parts.

        metrics = ["revenue", "ilrd_revenue", "user_unique"]
        revenue.arpdau(lens.query(metrics, by="country_code", over="last 28 complete days"), by="country_code")

    Over several days a player counts once for each day of activity.

    Claims: "ARPDAU" without *by*, "ARPDAU by" for one dimension.
    """
    result = metric_sums(frame, by, player_days=("user_unique", "user_unique"))
    money = revenue_by_source(frame, by)
    result["iap_arpdau"] = ratio(money["iap_revenue"], result["player_days"])
    result["ad_arpdau"] = ratio(money["ad_revenue"], result["player_days"])
    result["arpdau"] = result["iap_arpdau"] + result["ad_arpdau"]
    iap, ads, players = (
        frame[column_of(frame, *name)].astype("float64").fillna(0.0)
        for name in (("revenue", "sum"), ("ilrd_revenue", "sum"), ("user_unique", "user_unique"))
    )
    days = day_rates(frame, by, iap + ads, players)
    result[["arpdau_low", "arpdau_high", "largest_day"]] = days[["low", "high", "largest_day"]]
    return result.join(days[[*LEAD]])


@reads("revenue.arpdau")
def _read_arpdau(result: DataFrame, by: str | list[str] | None) -> Iterator[Finding]:
    """Say what a player's day is worth, or in which value of *by* it is worth most."""
    if by is None:
        yield read_level(result, "arpdau", kind="ARPDAU", largest_day=result["largest_day"].iloc[0])
    elif isinstance(by, str):
        yield read_leader(result, by, "arpdau", kind="ARPDAU by")


@requires(frame=FrameRequirements(metrics=("user_unique", "paying_users"), every=("day",), counts_players=True))
@returns(KEYS, "player_days paying_player_days payer_share")
def payer_share(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Return the share of active players who paid, for each value of *by*.

        daily = lens.query(["paying_users", "user_unique"], by="game", over="last 28 complete days")
        revenue.payer_share(daily, by="game")

    Over several days it is the share on a typical day, weighted by players.
    """
    result = metric_sums(
        frame,
        by,
        player_days=("user_unique", "user_unique"),
        paying_player_days=("paying_users", "paying_users"),
    )
    result["payer_share"] = ratio(result["paying_player_days"], result["player_days"])
    return result


@requires(frame=FrameRequirements(metrics=("paying_users", "revenue"), every=("day", "all"), counts_players=True))
@returns(KEYS, "paying_player_days iap_revenue", named("arppu", unit="USD per payer and day"))
def arppu(frame: DataFrame, by: str | Sequence[str] | None = None) -> DataFrame:
    """Return purchase revenue per paying player for each value of *by*.

        month = lens.query(["revenue", "paying_users"], by="platform", every="all", over="last 28 complete days")
        revenue.arppu(month, by="platform")

    Over several days a payer counts once for each day with a purchase, so the result is per payer and day. Of a query
    with every="all" it is per payer of the interval. Ad revenue belongs to no payer and is left out.
    """
    result = metric_sums(frame, by, paying_player_days=("paying_users", "paying_users"), iap_revenue=("revenue", "sum"))
    result["arppu"] = ratio(result["iap_revenue"], result["paying_player_days"])
    return result
