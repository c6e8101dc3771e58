"""What ads show, fill and earn.

Reads tidy frames of `Client.query`: `ilrd_revenue` for money and impressions, `ad_impressions_count` for ads shown,
`user_unique` for active players, `session_unique` for sessions, `event_count` by `ad_action` (where category is ads)
for the waterfall. Why revenue moved says `decomposition`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.tidy_frames import column_of, display_values, ratio, sum_over, with_ids, with_receipts_of
from gamelens.errors import BadQuery

By = str | Sequence[str] | None

CONCENTRATED: Final = 0.18
"""From this HHI on a market counts as concentrated (merger guidelines of the United States, 2023: 1,800 of 10,000)."""
SPREAD: Final = 0.10
"""Below it a market counts as spread (the same guidelines: 1,000)."""


def earnings(frame: DataFrame, by: By = None) -> DataFrame:
    """Impressions and money for each value of *by*, highest first, null kept as a group.

    Columns: *by* (category), impressions (Int64), ad_revenue (float64, USD), ecpm (float64, USD per 1000 impressions,
    NA without impressions), revenue_share (float64, 0 to 1, of all rows), impression_share (float64, 0 to 1).
    """
    count, money = column_of(frame, "ilrd_revenue", "event_count"), column_of(frame, "ilrd_revenue", "sum")
    made = sum_over(frame, by, [count, money]).rename(columns={count: "impressions", money: "ad_revenue"})
    made["ecpm"] = 1000 * ratio(made["ad_revenue"], made["impressions"])
    for share, part in (("revenue_share", "ad_revenue"), ("impression_share", "impressions")):
        made[share] = ratio(made[part], Series(made[part].sum(), index=made.index))
    return with_receipts_of(made.sort_values("ad_revenue", ascending=False, ignore_index=True), frame)


def per_player(frame: DataFrame, by: By = None) -> DataFrame:
    """Ads shown and ad money per daily active player; over several days the players of each day count.

    The frame holds ilrd_revenue, ad_impressions_count and user_unique at day granularity.

    Columns: *by*, player_days (Int64), ads_shown (Int64), ad_revenue (float64, USD), impressions_per_dau (float64, ads
    per player and day), ad_arpdau (float64, USD per player and day).
    """
    names = {
        column_of(frame, "user_unique", "user_unique"): "player_days",
        column_of(frame, "ad_impressions_count", "ad_impressions_count"): "ads_shown",
        column_of(frame, "ilrd_revenue", "sum"): "ad_revenue",
    }
    made = sum_over(frame, by, names).rename(columns=names)
    made["impressions_per_dau"] = ratio(made["ads_shown"], made["player_days"])
    made["ad_arpdau"] = ratio(made["ad_revenue"], made["player_days"])
    return with_receipts_of(made, frame)


def per_session(frame: DataFrame, by: By = None) -> DataFrame:
    """Ads shown per session.

    The frame holds ad_impressions_count and session_unique. A session that goes on past midnight counts on both days,
    in the service's daily numbers and so in their sum.

    Columns: *by*, sessions, ads_shown (Int64), impressions_per_session (float64, ads per session, NA without sessions).
    """
    names = {
        column_of(frame, "session_unique", "session_unique"): "sessions",
        column_of(frame, "ad_impressions_count", "ad_impressions_count"): "ads_shown",
    }
    made = sum_over(frame, by, names).rename(columns=names)
    made["impressions_per_session"] = ratio(made["ads_shown"], made["sessions"])
    return with_receipts_of(made, frame)


def concentration(frame: DataFrame, by: str) -> DataFrame:
    """How much the ad revenue rests on few values of *by*, in one row; the null group counts as one more value.

    Columns: values (Int64, those that earned), hhi (float64, 0 to 1: the sum of the squared revenue shares), equal_to
    (float64, 1 / hhi: so many values with equal shares would be as concentrated), largest (str, `(unknown)` for null),
    largest_share, unknown_share (float64, 0 to 1), sentence (str, plain text: escape it before it becomes HTML). All
    but values are NA without revenue.
    """
    earned = earnings(frame, by)
    shares = earned["revenue_share"].where(earned["ad_revenue"] > 0).dropna()
    hhi = float((shares**2).sum()) if len(shares) else float("nan")
    unknown = shares[earned.loc[shares.index, by].isna()].sum() if len(shares) else float("nan")
    largest = display_values(earned[by]).iloc[0] if len(shares) else None
    row = {
        "values": len(shares),
        "hhi": hhi,
        "equal_to": 1 / hhi,
        "largest": largest,
        "largest_share": shares.max(),
        "unknown_share": unknown,
        "sentence": _concentrated(largest, shares.max(), hhi) if largest is not None else "Nothing was earned.",
    }
    made = DataFrame([row]).astype({"values": "Int64", "largest": "str", "largest_share": "float64"})
    return with_receipts_of(made, frame)


def waterfall(frame: DataFrame) -> DataFrame:
    """What became of the ads a game asked for, from event_count by ad_action.

    Columns: step (category: requested, loaded, shown, clicked; loaded only where all SDKs report it), events (Int64),
    share_of_requests, share_of_step_before (float64, 0 to 1, NA after nothing).
    """
    counts = fill_rates(frame)
    steps = ["requested", *(["loaded"] if counts["loaded"].notna().any() else []), "shown", "clicked"]
    events = Series([counts[step].iloc[0] if len(counts) else 0 for step in steps], dtype="Int64")
    made = DataFrame({"step": pd.Categorical(steps, categories=steps, ordered=True), "events": events})
    made["share_of_requests"] = ratio(events, Series(events.iloc[0], index=events.index))
    made["share_of_step_before"] = ratio(events, events.shift(1))
    return with_receipts_of(made, frame)


def fill_rates(frame: DataFrame, by: By = None) -> DataFrame:
    """Requests, loads, shows and clicks for each value of *by*, and the rates between them, most requests first.

    A request is filled when an ad was loaded; where not every SDK reports loads, when one was shown.
    Mediation asks several networks for one ad break, each with a request of its own: of what is asked in all, the share
    filled is small, and only *failed* counts the breaks that stayed empty.

    Columns: *by* (category), requested, loaded (NA where not every SDK reported its loads), shown, failed, clicked
    (Int64); fill_rate (loaded / requested, or shown / requested), show_rate (shown / loaded, NA without loads),
    fail_rate (failed / shows tried), click_rate (clicked / shown) (float64, 0 to 1).
    """
    if "ad_action" not in frame:
        raise BadQuery("frame", list(frame.columns), "has no ad_action: query event_count by ad_action")
    count = column_of(frame, "event_count", "event_count")
    made = _actions(frame, by, count)
    made["fill_rate"] = ratio(made["loaded"].fillna(made["shown"]), made["requested"])
    made["show_rate"] = ratio(made["shown"], made["loaded"])
    made["fail_rate"] = ratio(made["failed"], made["shown"] + made["failed"])
    made["click_rate"] = ratio(made["clicked"], made["shown"])
    return with_receipts_of(made.sort_values("requested", ascending=False, ignore_index=True), frame)


def _actions(frame: DataFrame, by: By, count: str) -> DataFrame:
    names = {"request": "requested", "loaded": "loaded", "show": "shown", "failed_show": "failed", "clicked": "clicked"}
    action = frame["ad_action"].astype("object")
    split = {name: frame[count].where(action == value, 0).astype("Int64") for value, name in names.items()}
    made = sum_over(frame[with_ids(frame, by)].assign(**split), by, split)
    # fewer loads than shows: an SDK in the group reports none of its loads
    made["loaded"] = made["loaded"].where((made["loaded"] > 0) & (made["loaded"] >= made["shown"]))
    return made


def _concentrated(largest: str, share: float, hhi: float) -> str:
    how = "concentrated" if hhi >= CONCENTRATED else "spread" if hhi < SPREAD else "moderately concentrated"
    return (
        f"{largest} brings {share:.0%} of the ad revenue; with an HHI of {10_000 * hhi:,.0f} it is {how}, "
        f"as if {1 / hhi:.1f} had equal shares."
    )
