"""Ad revenue, ads shown, fill rates and the concentration of ad income.

The functions read tidy frames of `Client.query`: `ecpm` for money and impressions, `ad_impressions_count` for
ads shown, `user_unique` for active players, `session_unique` for sessions, `event_count` by `ad_action` (where category
is ads) for the waterfall. `decomposition` explains why ad revenue changed.

*by* may name `network` or `format`, which `canonical_names` derives from the names that SDKs write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pandas as pd
from msgspec import structs
from pandas import DataFrame, Series

from gamelens.analysis.ads.canonical_names import RAW_COLUMNS, UNKNOWN_REASON, named_for
from gamelens.analysis.ads.day_rates import day_rates, lead_of, read_leader, read_level
from gamelens.analysis.claims.findings import HALF_CENT, Clause, Finding, direction_of, reads
from gamelens.analysis.claims.leaders import LEAD
from gamelens.analysis.tidy_frames import (
    column_of,
    display_values,
    metric_sums,
    ratio,
    with_ids,
    with_receipt,
    with_receipts_of,
)
from gamelens.analysis.tidy_frames.columns import Column
from gamelens.analysis.tidy_frames.frame_columns import sum_over
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires
from gamelens.analysis.tidy_frames.returned_columns import FROM_DAYS, KEYS, between, named, returns
from gamelens.receipts import Receipt
from gamelens.wire.intervals import Interval

CONCENTRATED: Final = 0.18
"""Herfindahl and Hirschman's index (0 to 1, the sum of squared shares) from which on revenue is called concentrated.

Paper: Merger Guidelines of the United States, 2023, 2.1: 1,800 of 10,000.
"""
SPREAD: Final = 0.10
"""The same index below which revenue is called spread.

Paper: Merger Guidelines of the United States, 2023, 2.1: 1,000 of 10,000.
"""

By = str | Sequence[str] | None

_REVENUE: Final = FrameRequirements(metrics=("ecpm",))
_ACTIONS: Final = FrameRequirements(metrics=("event_count",), splits=("ad_action",))
_DEGREES: Final = ("spread", "moderately concentrated", "concentrated")
_CONCENTRATION: Final = (
    Column("dimension", "text", about="what is counted"),
    Column("values", "count", about="those with revenue"),
    between(
        Column("hhi", "number", "HHI", about="0 to 1, the sum of the squared revenue shares", na="without revenue"),
        "if the unknown revenue belongs to many others, or all of it to the largest",
    ),
    Column(
        "equal_to",
        "number",
        about="1 / hhi, the number of equal shares that would be as concentrated",
        na="without revenue",
    ),
    Column(
        "degree", "text", about='"spread" below `SPREAD`, "concentrated" from `CONCENTRATED` on', na="without revenue"
    ),
    *(
        Column(f"degree_{side}", "text", about=f"the degree of hhi_{side}", na="without revenue")
        for side in ("low", "high")
    ),
    Column("largest", "text", about="`(unknown)` for null", na="without revenue"),
    *(named(name, about="of what was earned", na="without revenue") for name in ("largest_share", "unknown_share")),
    named(
        "credited",
        about="what values with less than no revenue were credited, which is left out",
        na="without revenue",
    ),
)
_ACTION_COUNTS: Final = {
    **{"request": "requested", "loaded": "loaded", "show": "shown"},
    **{"failed_show": "failed", "clicked": "clicked"},
}
_STEPS: Final = ("requested", "loaded", "shown", "clicked")
_PER_PLAYER: Final = (
    ("user_unique", "user_unique"),
    ("ad_impressions_count", "ad_impressions_count"),
    ("ilrd_revenue", "sum"),
)
_FIRST: Final = 10
"""Values whose share together is named where there are more.

Choice: a rule of wording, as many as a table of a page shows.
"""
_REASONS: Final = {"not reported": "not_reported", "undisclosed": "undisclosed"}


@requires(frame=structs.replace(_REVENUE, takes_rest=True))
@returns(
    KEYS,
    "impressions ad_revenue ecpm",
    named("revenue_share", about="of what all rows earned, below 0 where more was credited than earned"),
    "impression_share",
    has_own_receipt=True,
)
def earnings(frame: DataFrame, by: By = None) -> DataFrame:
    """Return impressions, ad revenue and eCPM for each value of *by*, highest revenue first.

        income = lens.query("ecpm", by=["game", "ilrd_network_name"], over="last 28 complete days")
        ads.earnings(income, by=["game", "network"])

    Null is a group of its own. The receipt covers the days from the first to the last of *frame*, which may be
    fewer than the query had. Where days between them have no row, the receipt names no period.

    Claims: "ad revenue" of all rows; "ad revenue by" and "first ones" for one dimension, "unknown networks" where
    *by* has network_unknown.
    """
    frame = named_for(frame, by)
    result = metric_sums(frame, by, impressions=("ilrd_revenue", "event_count"), ad_revenue=("ilrd_revenue", "sum"))
    result["ecpm"] = 1000 * ratio(result["ad_revenue"], result["impressions"])
    for share, part in (("revenue_share", "ad_revenue"), ("impression_share", "impressions")):
        result[share] = ratio(result[part], Series(result[part].clip(lower=0).sum(), index=result.index))
    result = with_receipts_of(result.sort_values("ad_revenue", ascending=False, ignore_index=True), frame)
    return with_receipt(result, receipt) if (receipt := _own_receipt(frame)) else result


def _worth_naming(money: float) -> float | None:
    """Return *money* (USD), None below half a cent."""
    return money if money >= HALF_CENT else None


def _own_receipt(frame: DataFrame) -> Receipt:
    """Return the receipt of *frame*, of its own period if it has only some of the buckets, without gaps.

    With gaps it may be a part as well as the whole of a time in which some days brought nothing: then of no period.
    """
    receipt = Receipt.of(frame.attrs)
    if receipt.interval is None or receipt.asked.every is None or "timestamp" not in frame or not len(frame):
        return receipt
    first, last = frame["timestamp"].min(), frame["timestamp"].max()
    buckets = [*receipt.interval.buckets(receipt.asked.every)]
    held = [bucket for bucket in buckets if first <= bucket.start <= last]
    if not held or len(held) == len(buckets):
        return receipt
    is_whole = frame["timestamp"].nunique() == len(held)
    return receipt.within(receipt.interval & Interval(held[0].start, held[-1].end) if is_whole else None)


@reads("ads.earnings")
def _read_earnings(earned: DataFrame, by: str | list[str] | None) -> Iterator[Finding]:
    """Say what was earned, who brings most of it, and how much has no network."""
    total, keys = float(earned["ad_revenue"].sum()), [by] if isinstance(by, str) else by or []
    if not earned["ad_revenue"].ne(0).any():
        more = ["unknown networks"] if UNKNOWN_REASON in keys else ["ad revenue by"] if len(keys) == 1 else []
        for kind in ("ad revenue", *more):
            yield Finding(kind=kind, case="nothing_earned", unit="USD")
        return
    interval = Receipt.of(earned.attrs).interval
    credited = -float(earned["ad_revenue"].clip(upper=0).sum())
    numbers: dict[str, Any] = {"days": interval.length.days if interval else None, "credited": _worth_naming(credited)}
    case = "sum" if total >= 0 else "credited_more"
    yield Finding(kind="ad revenue", case=case, size=total, unit="USD", judged="counted", numbers=numbers)
    if UNKNOWN_REASON in keys:
        yield _unknown_networks(earned)
    if len(keys) != 1 or UNKNOWN_REASON in keys:
        return
    top, name = earned.iloc[0], display_values(earned[keys[0]]).iloc[0]
    if top["ad_revenue"] <= 0:
        return
    yield Finding(
        kind="ad revenue by",
        case="largest" if len(earned) > 1 else "alone",
        subject={keys[0]: name},
        direction="higher",
        size=float(top["revenue_share"]),
        unit="share",
        judged="counted",
        numbers={"by": keys[0], "values": int(earned[keys[0]].notna().sum()), "name": name, "ecpm": top["ecpm"]},
    )
    if len(earned) > _FIRST:
        share = float(earned["revenue_share"].head(_FIRST).sum())
        numbers = {"by": keys[0], "first": _FIRST}
        yield Finding(kind="first ones", case="share", size=share, unit="share", judged="counted", numbers=numbers)


def _unknown_networks(earned: DataFrame) -> Finding:
    """Return the share of revenue without a network, by reason."""
    unknown = earned[earned[UNKNOWN_REASON].notna()]
    shares = unknown.groupby(unknown[UNKNOWN_REASON].astype(str), sort=False)["revenue_share"].sum()
    shares = shares[shares > 0].sort_values(ascending=False)
    is_one = len(shares) == 1  # then its share is the whole unknown share
    reasons = [
        Clause(_REASONS[str(reason)], {"part": None if is_one else share}, part="part")
        for reason, share in shares.items()
    ]
    return Finding(
        kind="unknown networks",
        case="some" if len(reasons) else "none",
        size=float(shares.sum()),
        unit="share",
        judged="counted",
        numbers={"reasons": reasons, **{f"{_REASONS[str(reason)]}_share": share for reason, share in shares.items()}},
    )


@requires(
    frame=FrameRequirements(
        metrics=("ilrd_revenue", "ad_impressions_count", "user_unique"), every=("day",), counts_players=True
    )
)
@returns(
    KEYS,
    "player_days ads_shown ad_revenue",
    between("impressions_per_dau", FROM_DAYS),
    between("ad_arpdau", FROM_DAYS),
    lead_of("ad_arpdau"),
)
def per_player(frame: DataFrame, by: By = None) -> DataFrame:
    """Return ads shown and ad revenue per daily active player for each value of *by*.

        metrics = ["ilrd_revenue", "ad_impressions_count", "user_unique"]
        daily = lens.query(metrics, by="platform", over="last 28 complete days")
        ads.per_player(daily, by="platform")

    The frame holds ilrd_revenue, ad_impressions_count and user_unique at day granularity. Over several days a player
    counts once for each day of activity.

    Claims: "ads per player" and "ad ARPDAU" without *by*, "ad ARPDAU by" with it.
    """
    result = metric_sums(
        frame,
        by,
        player_days=("user_unique", "user_unique"),
        ads_shown=("ad_impressions_count", "ad_impressions_count"),
        ad_revenue=("ilrd_revenue", "sum"),
    )
    players, shown, money = (frame[column_of(frame, *metric)] for metric in _PER_PLAYER)
    for rate, name, part in (("impressions_per_dau", "ads_shown", shown), ("ad_arpdau", "ad_revenue", money)):
        days = day_rates(frame, by, part, players)
        result[rate] = ratio(result[name], result["player_days"])
        result[[f"{rate}_low", f"{rate}_high"]] = days[["low", "high"]]
    return result.join(days[[*LEAD]])


@reads("ads.per_player")
def _read_per_player(result: DataFrame, by: str | list[str] | None) -> Iterator[Finding]:
    """Say how many ads a player sees and what they bring, or in which value of *by* they bring most."""
    if by is None:
        yield read_level(result, "impressions_per_dau", kind="ads per player")
        if result["player_days"].iloc[0] > 0:
            yield read_level(result, "ad_arpdau", kind="ad ARPDAU")
    elif isinstance(by, str):
        yield read_leader(result, by, "ad_arpdau", kind="ad ARPDAU by")


@requires(frame=FrameRequirements(metrics=("ad_impressions_count", "session_unique"), counts_players=True))
@returns(KEYS, "sessions ads_shown", between("impressions_per_session", FROM_DAYS))
def per_session(frame: DataFrame, by: By = None) -> DataFrame:
    """Return ads shown per session for each value of *by*.

        daily = lens.query(["ad_impressions_count", "session_unique"], by="game", over="last 7 complete days")
        ads.per_session(daily, by="game")

    The frame holds ad_impressions_count and session_unique. A session that runs past midnight counts on both days, in
    the service's daily numbers and so in their sum.

    Claims: "ads per session" without *by*.
    """
    result = metric_sums(
        frame,
        by,
        sessions=("session_unique", "session_unique"),
        ads_shown=("ad_impressions_count", "ad_impressions_count"),
    )
    rate = "impressions_per_session"
    result[rate] = ratio(result["ads_shown"], result["sessions"])
    shown, sessions = (frame[column_of(frame, name, name)] for name in ("ad_impressions_count", "session_unique"))
    result[[f"{rate}_low", f"{rate}_high"]] = day_rates(frame, by, shown, sessions)[["low", "high"]]
    return result


@reads("ads.per_session")
def _read_per_session(result: DataFrame, by: str | list[str] | None) -> Iterator[Finding]:
    """Say how many ads a session has."""
    if by is None:
        yield read_level(result, "impressions_per_session", kind="ads per session")


@requires(frame=_REVENUE)
@returns(*_CONCENTRATION)
def concentration(frame: DataFrame, by: str) -> DataFrame:
    """Return in one row how far ad revenue depends on a few values of *by*.

        income = lens.query("ecpm", by="ilrd_network_name", over="last 28 complete days")
        ads.concentration(income, by="network")

    Networks and formats are counted under their canonical names, also if *by* is the column of raw ones: two spellings
    of one network are not two networks. The null group counts as one more value.

    Numbers but values are NA without revenue. Claims: "concentration".
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
        "credited": -float(earned["ad_revenue"].clip(upper=0).sum()),
    }
    largest = display_values(earned[by]).iloc[0] if len(shares) else None
    degrees = {name.replace("hhi", "degree"): _degree(numbers[name]) for name in ("hhi", "hhi_low", "hhi_high")}
    texts = {"dimension": by, "largest": largest} | (degrees if len(shares) else dict.fromkeys(degrees))
    result = DataFrame([texts | {"values": len(shares)}])
    result = result.assign(**{name: float(number) if len(shares) else float("nan") for name, number in numbers.items()})
    return result.assign(equal_to=1 / result["hhi"])


def _degree(hhi: float) -> str:
    return _DEGREES[(hhi >= SPREAD) + (hhi >= CONCENTRATED)]


@reads("ads.concentration")
def _read_concentration(measured: DataFrame) -> Iterator[Finding]:
    """Say how concentrated the revenue is; it is compared with `CONCENTRATED`."""
    row: dict[Any, Any] = measured.iloc[0].to_dict()
    if pd.isna(row["hhi"]):
        yield Finding(kind="concentration", case="nothing_earned", unit="HHI")
        return
    row |= {"hhi_of_10000": 10_000 * row["hhi"]}
    if row["degree_low"] == row["degree_high"]:
        row |= {"degree_low": None, "degree_high": None}
    yield Finding(
        kind="concentration",
        case="degree",
        subject={row["dimension"]: row["largest"]},
        direction=direction_of(row["hhi_low"], row["hhi_high"], neutral=CONCENTRATED),
        size=row["hhi"],
        low=row["hhi_low"],
        high=row["hhi_high"],
        unit="HHI",
        judged="counted",
        numbers={**row, "credited": _worth_naming(row["credited"])},
    )


@requires(frame=_ACTIONS)
@returns(
    Column("step", "category", about="loaded only where all SDKs report it", values=_STEPS),
    "events",
    named("share_of_requests", na="without requests"),
    named("share_of_step_before", na="of the first step, and after one without events"),
)
def waterfall(frame: DataFrame) -> DataFrame:
    """Return the steps of a game's ads, from request to click, from event_count by ad_action.

    For example:

        is_rewarded = (gl.dim.category == "ads") & (gl.dim.ad_type == "rewarded_video")
        actions = lens.query("event_count", by="ad_action", where=is_rewarded, over="last week")
        ads.waterfall(actions)
    """
    counts = fill_rates(frame)
    steps = ["requested", *(["loaded"] if counts["loaded"].notna().any() else []), "shown", "clicked"]
    events = Series([counts[step].iloc[0] if len(counts) else 0 for step in steps], dtype="Int64")
    result = DataFrame({"step": pd.Categorical(steps, categories=steps, ordered=True), "events": events})
    result["share_of_requests"] = ratio(events, Series(events.iloc[0], index=events.index))
    result["share_of_step_before"] = ratio(events, events.shift(1))
    return result


@requires(frame=_ACTIONS)
@returns(
    KEYS,
    "requested",
    named("loaded", na="where not every SDK reported its loads"),
    "shown failed clicked",
    between(named("fill_rate", about="loaded / requested, or shown / requested"), FROM_DAYS),
    "show_rate fail_rate",
    between("click_rate", FROM_DAYS),
    lead_of("fill_rate"),
)
def fill_rates(frame: DataFrame, by: By = None) -> DataFrame:
    """Return requests, loads, shows and clicks for each value of *by*, with their rates.

        split, is_ad = ["ad_action", "ad_sdk_name"], gl.dim.category == "ads"
        actions = lens.query("event_count", by=split, where=is_ad, over="last 28 complete days")
        ads.fill_rates(actions, by="network")

    A request is filled when an ad was loaded, or when one was shown if not every SDK reports loads. Mediation sends a
    request to several networks for one ad break, so the share of requests filled is small, and only *failed* counts the
    breaks that stayed empty. Most requests first.

    Claims: "clicks" without *by*, "fill rate" with it.

    Raises:
        BadQuery: the frame has no ad_action.
    """
    frame = named_for(frame, by)
    events = _action_events(frame)
    result = _action_counts(frame, by, events)
    filled = _filled(frame, by, result, events)
    result["fill_rate"] = ratio(result["loaded"].fillna(result["shown"]), result["requested"])
    fills = day_rates(frame, by, filled, events["requested"], counted="shares")
    result[["fill_rate_low", "fill_rate_high"]] = fills[["low", "high"]]
    result["show_rate"] = ratio(result["shown"], result["loaded"])
    result["fail_rate"] = ratio(result["failed"], result["shown"] + result["failed"])
    result["click_rate"] = ratio(result["clicked"], result["shown"])
    clicks = day_rates(frame, by, events["clicked"], events["shown"], counted="shares")
    result[["click_rate_low", "click_rate_high"]] = clicks[["low", "high"]]
    result = result.join(fills[[*LEAD]])
    return result.sort_values("requested", ascending=False, ignore_index=True)


@reads("ads.fill_rates")
def _read_fill_rates(result: DataFrame, by: str | list[str] | None) -> Iterator[Finding]:
    """Say how many of the shown ads were clicked, or which value of *by* fills most of its requests."""
    if by is None:
        yield read_level(result, "click_rate", kind="clicks", shown=int(result["shown"].iloc[0]))
    elif isinstance(by, str):
        yield read_leader(result, by, "fill_rate", kind="fill rate")


@requires(frame=_ACTIONS, daily=_REVENUE)
@returns(
    KEYS,
    "breaks failed",
    between(named("fail_rate", unit="failed / breaks", na="without breaks"), FROM_DAYS),
    lead_of("fail_rate"),
    named("worth", na="without *daily*"),
)
def empty_breaks(frame: DataFrame, by: By = None, *, daily: DataFrame | None = None) -> DataFrame:
    """Return the ad breaks that stayed empty for each value of *by*, from event_count by ad_action.

        over = "last 14 complete days"
        actions = lens.query("event_count", by="ad_action", where=gl.dim.category == "ads", over=over)
        ads.empty_breaks(actions, daily=lens.query("ecpm", over=over))

    An ad break is one that showed an ad or failed to show any.

    Args:
        frame: event_count by ad_action.
        by: dimensions of the frame.
        daily: the ad revenue of the same ads, for the worth of the empty breaks at its average eCPM. An ad that no
            network offered may have paid less.

    Highest fail_rate first. Claims: "empty ad breaks" and their "worth" without *by*, "empty ad breaks by" with it.
    """
    frame = named_for(frame, by)
    events = _action_events(frame)
    counts = _action_counts(frame, by, events)
    result = counts.drop(columns=["requested", "loaded", "clicked", "shown", "failed"])
    result["breaks"], result["failed"] = counts["shown"] + counts["failed"], counts["failed"]
    result["fail_rate"] = ratio(result["failed"], result["breaks"])
    days = day_rates(frame, by, events["failed"], events["shown"] + events["failed"], counted="shares")
    result[["fail_rate_low", "fail_rate_high"]] = days[["low", "high"]]
    price = float("nan") if daily is None else float(earnings(daily)["ecpm"].iloc[0])
    result = result.join(days[[*LEAD]]).assign(worth=result["failed"].astype("float64") * price / 1000)
    return result.sort_values("fail_rate", ascending=False, ignore_index=True, kind="stable")


@reads("ads.empty_breaks")
def _read_empty_breaks(result: DataFrame, by: str | list[str] | None) -> Iterator[Finding]:
    """Say how many ad breaks stayed empty and what they were worth, or for which value of *by* most did."""
    if isinstance(by, str):
        worst = read_leader(result, by, "fail_rate", kind="empty ad breaks by")
        yield structs.replace(worst, case="none") if worst.case == "nothing" else worst
    if by is not None:
        return
    row = result.iloc[0]
    level = read_level(result, "fail_rate", kind="empty ad breaks", breaks=int(row["breaks"]))
    yield structs.replace(level, case="none") if level.size == 0 else level
    if row["failed"] > 0 and not pd.isna(row["worth"]):
        numbers = {"failed": int(row["failed"])}
        yield Finding(
            kind="worth of empty ad breaks",
            case="worth",
            size=row["worth"],
            unit="USD",
            judged="counted",
            numbers=numbers,
        )


def _action_events(frame: DataFrame) -> dict[str, Series[Any]]:
    """Return the events of each ad action in each row, by the name of its count."""
    count, action = frame[column_of(frame, "event_count", "event_count")], frame["ad_action"].astype("object")
    return {name: count.where(action == value, 0).astype("Int64") for value, name in _ACTION_COUNTS.items()}


def _action_counts(frame: DataFrame, by: By, events: dict[str, Series[Any]]) -> DataFrame:
    """Return the number of events of each ad action for each value of *by*."""
    result = sum_over(frame[with_ids(frame, by)].assign(**events), by, events)
    # fewer loads than shows: some SDK of the group does not report loads
    result["loaded"] = result["loaded"].where((result["loaded"] > 0) & (result["loaded"] >= result["shown"]))
    return result


def _filled(frame: DataFrame, by: By, counts: DataFrame, events: dict[str, Series[Any]]) -> Series[Any]:
    """Return the requests that each row has filled: loads where the group of the row reports them, else shows."""
    keys = with_ids(frame, by)
    is_loaded = counts["loaded"].notna().to_numpy()
    group = frame.groupby(keys, observed=True, dropna=False, sort=False).ngroup() if keys else Series(0, frame.index)
    return events["loaded"].where(is_loaded[group.to_numpy()], events["shown"])
