"""Ad revenue, ads shown, fill rates and the concentration of ad income.

The functions read tidy frames of `Client.query`: `ecpm` for money and impressions, `ad_impressions_count` for
ads shown, `user_unique` for active players, `session_unique` for sessions, `event_count` by `ad_action` (where category
is ads) for the waterfall. `decomposition` explains why ad revenue changed.

*by* may name `network` or `format`, which `canonical_names` derives from the names that SDKs write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd
from msgspec.structs import replace
from pandas import DataFrame, Series

from gamelens.analysis.ads.ad_claims import concentration_claim
from gamelens.analysis.ads.canonical_names import RAW_COLUMNS, named_for
from gamelens.analysis.tidy_frames import (
    column_of,
    display_values,
    metric_sums,
    ratio,
    sum_over,
    with_ids,
    with_receipts_of,
)
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires

By = str | Sequence[str] | None

_REVENUE: Final = FrameRequirements(metrics=("ecpm",))
_ACTIONS: Final = FrameRequirements(metrics=("event_count",), splits=("ad_action",))


@requires(frame=replace(_REVENUE, takes_rest=True))
def earnings(frame: DataFrame, by: By = None) -> DataFrame:
    """Return impressions, ad revenue and eCPM for each value of *by*, highest revenue first.

    Null is a group of its own.

    Columns: *by* (category), impressions (Int64), ad_revenue (float64, USD), ecpm (float64, USD per 1000 impressions,
    NA without impressions), revenue_share (float64, 0 to 1, of all rows), impression_share (float64, 0 to 1).
    """
    frame = named_for(frame, by)
    result = metric_sums(frame, by, impressions=("ilrd_revenue", "event_count"), ad_revenue=("ilrd_revenue", "sum"))
    result["ecpm"] = 1000 * ratio(result["ad_revenue"], result["impressions"])
    for share, part in (("revenue_share", "ad_revenue"), ("impression_share", "impressions")):
        result[share] = ratio(result[part], Series(result[part].sum(), index=result.index))
    return with_receipts_of(result.sort_values("ad_revenue", ascending=False, ignore_index=True), frame)


@requires(
    frame=FrameRequirements(
        metrics=("ilrd_revenue", "ad_impressions_count", "user_unique"), every=("day",), counts_players=True
    )
)
def per_player(frame: DataFrame, by: By = None) -> DataFrame:
    """Return ads shown and ad revenue per daily active player for each value of *by*.

    The frame holds ilrd_revenue, ad_impressions_count and user_unique at day granularity. Over several days a player
    counts once for each day of activity.

    Columns: *by*, player_days (Int64), ads_shown (Int64), ad_revenue (float64, USD), impressions_per_dau (float64, ads
    per player and day), ad_arpdau (float64, USD per player and day).
    """
    result = metric_sums(
        frame,
        by,
        player_days=("user_unique", "user_unique"),
        ads_shown=("ad_impressions_count", "ad_impressions_count"),
        ad_revenue=("ilrd_revenue", "sum"),
    )
    result["impressions_per_dau"] = ratio(result["ads_shown"], result["player_days"])
    result["ad_arpdau"] = ratio(result["ad_revenue"], result["player_days"])
    return with_receipts_of(result, frame)


@requires(frame=FrameRequirements(metrics=("ad_impressions_count", "session_unique"), counts_players=True))
def per_session(frame: DataFrame, by: By = None) -> DataFrame:
    """Return ads shown per session for each value of *by*.

    The frame holds ad_impressions_count and session_unique. A session that runs past midnight counts on both days, in
    the service's daily numbers and so in their sum.

    Columns: *by*, sessions, ads_shown (Int64), impressions_per_session (float64, ads per session, NA without sessions).
    """
    result = metric_sums(
        frame,
        by,
        sessions=("session_unique", "session_unique"),
        ads_shown=("ad_impressions_count", "ad_impressions_count"),
    )
    result["impressions_per_session"] = ratio(result["ads_shown"], result["sessions"])
    return with_receipts_of(result, frame)


@requires(frame=_REVENUE)
def concentration(frame: DataFrame, by: str) -> DataFrame:
    """Return in one row how far ad revenue depends on few values of *by*.

    Networks and formats are counted under their canonical names, also if *by* is the column of raw ones: two spellings
    of one network are not two networks. The null group counts as one more value.

    Columns: dimension (str, what is counted), values (Int64, those with revenue), hhi (float64, 0 to 1: the sum of the
    squared revenue shares), equal_to (float64, 1 / hhi: the number of equal shares that would be as concentrated),
    hhi_low, hhi_high (float64, if the unknown revenue belongs to many others, or all of it to the largest), largest
    (str, `(unknown)` for null), largest_share, unknown_share (float64, 0 to 1), sentence (str, plain text: escape it
    before it becomes HTML). Numbers but values are NA without revenue.
    """
    by = RAW_COLUMNS.get(by, by)
    earned = earnings(frame, by)
    shares = earned["revenue_share"].where(earned["ad_revenue"] > 0).dropna()
    is_unknown = earned.loc[shares.index, by].isna()
    known, unknown = shares[~is_unknown], float(shares[is_unknown].sum())
    squares, most = float((known**2).sum()), float(known.max()) if len(known) else 0.0
    numbers = {
        "hhi": squares + unknown**2,
        "hhi_low": squares,
        "hhi_high": squares - most**2 + (most + unknown) ** 2,
        "largest_share": shares.max(),
        "unknown_share": unknown,
    }
    largest = display_values(earned[by]).iloc[0] if len(shares) else None
    row = {"dimension": by, "values": len(shares), "largest": largest}
    result = DataFrame([row]).astype({"dimension": "str", "values": "Int64", "largest": "str"})
    result = result.assign(**{name: float(number) if len(shares) else float("nan") for name, number in numbers.items()})
    result["equal_to"] = 1 / result["hhi"]
    result["sentence"] = concentration_claim(result).text
    return with_receipts_of(result, frame)


@requires(frame=_ACTIONS)
def waterfall(frame: DataFrame) -> DataFrame:
    """Return the steps of a game's ads, from request to click, from event_count by ad_action.

    Columns: step (category: requested, loaded, shown, clicked; loaded only where all SDKs report it), events (Int64),
    share_of_requests, share_of_step_before (float64, 0 to 1, NA after a step without events).
    """
    counts = fill_rates(frame)
    steps = ["requested", *(["loaded"] if counts["loaded"].notna().any() else []), "shown", "clicked"]
    events = Series([counts[step].iloc[0] if len(counts) else 0 for step in steps], dtype="Int64")
    result = DataFrame({"step": pd.Categorical(steps, categories=steps, ordered=True), "events": events})
    result["share_of_requests"] = ratio(events, Series(events.iloc[0], index=events.index))
    result["share_of_step_before"] = ratio(events, events.shift(1))
    return with_receipts_of(result, frame)


@requires(frame=_ACTIONS)
def fill_rates(frame: DataFrame, by: By = None) -> DataFrame:
    """Return requests, loads, shows and clicks for each value of *by*, with their rates.

    A request is filled when an ad was loaded, or when one was shown if not every SDK reports loads. Mediation sends a
    request to several networks for one ad break, so the share of requests filled is small, and only *failed* counts the
    breaks that stayed empty. Most requests first.

    Columns: *by* (category), requested, loaded (NA where not every SDK reported its loads), shown, failed, clicked
    (Int64); fill_rate (loaded / requested, or shown / requested), show_rate (shown / loaded, NA without loads),
    fail_rate (failed / (shown + failed)), click_rate (clicked / shown) (float64, 0 to 1).

    Raises:
        BadQuery: the frame has no ad_action.
    """
    frame = named_for(frame, by)
    count = column_of(frame, "event_count", "event_count")
    result = _action_counts(frame, by, count)
    result["fill_rate"] = ratio(result["loaded"].fillna(result["shown"]), result["requested"])
    result["show_rate"] = ratio(result["shown"], result["loaded"])
    result["fail_rate"] = ratio(result["failed"], result["shown"] + result["failed"])
    result["click_rate"] = ratio(result["clicked"], result["shown"])
    return with_receipts_of(result.sort_values("requested", ascending=False, ignore_index=True), frame)


def _action_counts(frame: DataFrame, by: By, count: str) -> DataFrame:
    """Return the number of events of each ad action for each value of *by*."""
    names = {"request": "requested", "loaded": "loaded", "show": "shown", "failed_show": "failed", "clicked": "clicked"}
    action = frame["ad_action"].astype("object")
    split = {name: frame[count].where(action == value, 0).astype("Int64") for value, name in names.items()}
    result = sum_over(frame[with_ids(frame, by)].assign(**split), by, split)
    # fewer loads than shows: some SDK of the group does not report loads
    result["loaded"] = result["loaded"].where((result["loaded"] > 0) & (result["loaded"] >= result["shown"]))
    return result
