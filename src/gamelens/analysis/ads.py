"""What ads show, fill and earn.

Reads tidy frames of `Client.query`: `ilrd_revenue` for money and impressions, `ad_impressions_count` for ads shown,
`user_unique` for active players, `event_count` by `ad_action` (where category is ads) for the waterfall.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pandas import DataFrame, Series

from gamelens.analysis.frames import carry, column_of, ratio, sum_over, with_ids
from gamelens.errors import BadQuery

By = str | Sequence[str] | None


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
    return carry(made.sort_values("ad_revenue", ascending=False, ignore_index=True), frame)


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
    return carry(made, frame)


def waterfall(frame: DataFrame) -> DataFrame:
    """What became of the ads a game asked for, from event_count by ad_action.

    Columns: step (category: requested, loaded, shown, clicked; loaded only where SDKs report it), events (Int64),
    share_of_requests, share_of_step_before (float64, 0 to 1, NA after nothing).
    """
    counts = fill_rates(frame)
    steps = ["requested", *(["loaded"] if counts["loaded"].notna().any() else []), "shown", "clicked"]
    events = Series([counts[step].iloc[0] if len(counts) else 0 for step in steps], dtype="Int64")
    made = DataFrame({"step": pd.Categorical(steps, categories=steps, ordered=True), "events": events})
    made["share_of_requests"] = ratio(events, Series(events.iloc[0], index=events.index))
    made["share_of_step_before"] = ratio(events, events.shift(1))
    return carry(made, frame)


def fill_rates(frame: DataFrame, by: By = None) -> DataFrame:
    """Requests, loads, shows and clicks for each value of *by*, and the rates between them, most requests first.

    Columns: *by* (category), requested, loaded (NA where no SDK reported a load), shown, failed, clicked (Int64);
    fill_rate (shown / requested), fail_rate (failed / shows tried), click_rate (clicked / shown) (float64, 0 to 1).
    """
    if "ad_action" not in frame:
        raise BadQuery("frame", list(frame.columns), "has no ad_action: query event_count by ad_action")
    count = column_of(frame, "event_count", "event_count")
    made = _actions(frame, by, count)
    made["fill_rate"] = ratio(made["shown"], made["requested"])
    made["fail_rate"] = ratio(made["failed"], made["shown"] + made["failed"])
    made["click_rate"] = ratio(made["clicked"], made["shown"])
    return carry(made.sort_values("requested", ascending=False, ignore_index=True), frame)


def _actions(frame: DataFrame, by: By, count: str) -> DataFrame:
    names = {"request": "requested", "loaded": "loaded", "show": "shown", "failed_show": "failed", "clicked": "clicked"}
    action = frame["ad_action"].astype("object")
    split = {name: frame[count].where(action == value, 0).astype("Int64") for value, name in names.items()}
    made = sum_over(frame[with_ids(frame, by)].assign(**split), by, split)
    made["loaded"] = made["loaded"].where(made["loaded"] > 0)
    return made
