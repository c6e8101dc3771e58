"""Claims about ad revenue: largest shares, concentration, and prices like for like."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
from pandas import DataFrame

from gamelens._text import format_number
from gamelens.analysis.claims import Claim, direction_of
from gamelens.analysis.tidy_frames import column_of, display_values
from gamelens.analysis.tidy_frames.frame_requirements import FrameRequirements, requires, result_of

CONCENTRATED: Final = 0.18
"""HHI from which a market is concentrated.

The merger guidelines of the United States (2023) say 1,800 of 10,000.
"""
SPREAD: Final = 0.10
"""HHI below which a market is spread (the same guidelines: 1,000)."""
COMPARABLE: Final = 0.5
"""Share of a network's impressions that must be comparable before advice is given."""

_EARNED: Final = result_of("ads.earnings(frame, by=...)", "ad_revenue", "revenue_share")
_INDEX: Final = result_of("ads.ecpm_index(frame)", "index", "low", "high")
_WORDS: Final = {"network": "network", "format": "ad format", "country_code": "country", "game": "game"}


@requires(measured=result_of("ads.concentration(frame, by=...)", "hhi", "largest", "largest_share"))
def concentration_claim(measured: DataFrame) -> Claim:
    """Return the claim of a row of `concentration`: the largest share, and its degree.

    Its size is the HHI, its bounds those of the unknown revenue; it is compared with `CONCENTRATED`.
    """
    row = measured.iloc[0]
    kind, unit = f"concentration of {row['dimension']}", "HHI"
    if pd.isna(row["hhi"]):
        return Claim(kind=kind, direction="unknown", unit=unit, text="Nothing was earned.")
    degree, low, high = (_degree(row[name]) for name in ("hhi", "hhi_low", "hhi_high"))
    text = (
        f"{row['largest']} brings {row['largest_share']:.0%} of the ad revenue; with an HHI of "
        f"{10_000 * row['hhi']:,.0f} it is {degree}, as if {row['equal_to']:.1f} had equal shares."
    )
    if low != high:
        text += f" Depending on whose the unknown {row['unknown_share']:.0%} are, it is {low} or {high}."
    return Claim(
        kind=kind,
        subject={row["dimension"]: row["largest"]},
        direction=direction_of(row["hhi_low"], row["hhi_high"], neutral=CONCENTRATED),
        size=float(row["hhi"]),
        low=float(row["hhi_low"]),
        high=float(row["hhi_high"]),
        unit=unit,
        text=text,
    )


@requires(frame=FrameRequirements(metrics=("ilrd_revenue",)))
def earned_claim(frame: DataFrame) -> Claim:
    """Return the ad revenue of all rows and the days that it came from.

    Revenue is counted, not estimated, so the claim has no interval.
    """
    total = float(frame[column_of(frame, "ilrd_revenue", "sum")].sum())
    if not total > 0:
        return Claim(kind="ad revenue", direction="unknown", unit="USD", text="Nothing was earned.")
    days = frame["timestamp"].nunique() if "timestamp" in frame else 1
    period = f" over {days:,} days" if days > 1 else ""
    text = f"Ads earned {format_number(total, 'money')}{period}."
    return Claim(kind="ad revenue", direction="unknown", size=total, unit="USD", text=text)


@requires(earned=_EARNED)
def first_share(earned: DataFrame, by: str, *, most: int = 10) -> Claim:
    """Return the share of revenue of the *most* values of *by* that earn most, of `earnings`.

    Revenue is counted, not estimated, so the claim has no interval.
    """
    words = _plural(_WORDS.get(by, by), 2)
    kind, total = f"ad revenue of the first {words}", earned["ad_revenue"].sum()
    if not total > 0:
        return Claim(kind=kind, direction="unknown", unit="share", text="Nothing was earned.")
    if len(earned) <= most:
        text = f"No other {words} earned anything."
        return Claim(kind=kind, direction="unknown", size=1.0, unit="share", text=text)
    share = float(earned["ad_revenue"].nlargest(most).sum() / total)
    text = f"The {most} {words} that earn most bring {format_number(share, 'share')} of it."
    return Claim(kind=kind, direction="unknown", size=share, unit="share", text=text)


@requires(earned=_EARNED)
def largest_share(earned: DataFrame, by: str) -> Claim:
    """Return which value of *by* brings most of the revenue of `earnings`.

    Revenue is counted, not estimated, so the claim has no interval.
    """
    kind, words = f"ad revenue by {by}", _WORDS.get(by, by)
    if not len(earned) or not earned["ad_revenue"].sum() > 0:
        return Claim(kind=kind, direction="unknown", unit="share", text="Nothing was earned.")
    place = int(earned["ad_revenue"].argmax())
    top, name = earned.iloc[place], display_values(earned[by]).iloc[place]
    known = int(earned[by].notna().sum())
    start = f"Of {known:,} {_plural(words, known)}, {name} brings the largest share of the ad revenue"
    start = start if len(earned) > 1 else f"{name} brings all of the ad revenue"
    share = f": {format_number(top['revenue_share'], 'share')}" if len(earned) > 1 else ""
    text = f"{start}{share}, at an eCPM of {format_number(top['ecpm'], 'money')}."
    return Claim(
        kind=kind, subject={by: name}, direction="higher", size=float(top["revenue_share"]), unit="share", text=text
    )


@requires(earned=_EARNED)
def unknown_networks(earned: DataFrame) -> Claim:
    """Return the share of revenue without a network, by reason.

    *earned* is `earnings` by network and network_unknown.
    """
    kind = "ad revenue without a network"
    unknown = earned[earned["network"].isna()].set_index("network_unknown")["revenue_share"]
    total = float(unknown.sum())
    if not total > 0:
        return Claim(kind=kind, direction="lower", size=0.0, unit="share", text="Every impression names its network.")
    reasons = {"not reported": "named by no SDK", "undisclosed": "not disclosed by the network"}
    parts = [f"{format_number(share, 'share')} {reasons.get(str(why), str(why))}" for why, share in unknown.items()]
    text = f"The network of {format_number(total, 'share')} of the ad revenue is unknown"
    text += f": {', '.join(parts)}." if len(parts) > 1 else f", {parts[0].partition('% ')[2]}."
    return Claim(kind=kind, direction="unknown", size=total, unit="share", text=text)


@requires(index=_INDEX)
def ecpm_claims(index: DataFrame, by: str = "network") -> list[Claim]:
    """Return what `ecpm_index` says of each value of *by*, highest index first."""
    return [_ecpm_claim(row, by) for row in index.to_dict("records")]


@requires(index=_INDEX)
def ecpm_advice(index: DataFrame, by: str = "network") -> Claim:
    """Return the value of *by* to test with more impressions, if an interval carries it.

    It is the one that surely pays most more than the others. Values of which few impressions are comparable are left
    out.
    """
    kind, words = f"advice on {by}", _plural(_WORDS.get(by, by), 2)
    known = index[(index["comparable_share"] >= COMPARABLE) & index["low"].notna()]
    better = known[known["low"] > 1].sort_values("low", ascending=False)
    if not len(known):
        return Claim(kind=kind, direction="unknown", unit="ratio", text=f"No {words} can be compared like for like.")
    if not len(better):
        text = f"The data does not tell that any of {len(known):,} {words} pays more than the others like for like."
        return Claim(kind=kind, direction="no clear difference", unit="ratio", text=text)
    row = better.iloc[0]
    name = str(row[by])
    text = (
        f"{name} pays {_percent(row)} than the other {words} like for like and has "
        f"{format_number(row['impressions'] / index['impressions'].sum(), 'share')} of the impressions: "
        "test whether it pays as much for more of them."
    )
    return _ratio_claim(kind, {by: name}, row, text)


def _ecpm_claim(row: dict[Any, Any], by: str) -> Claim:
    """Return the claim about one row of `ecpm_index`."""
    name, words = str(row[by]), _plural(_WORDS.get(by, by), 2)
    others = f"the other {words} in the same game, country, format and day"
    if pd.isna(row["low"]):
        text = f"{name} cannot be compared: {format_number(row['comparable_share'], 'share')} of its impressions are "
        text += f"where others have some too, on {row['days']:,} days."
    elif row["low"] > 1 or row["high"] < 1:
        text = f"{name} pays {_percent(row)} than {others}."
    else:
        text = f"{name} pays neither clearly more nor less than {others}: between {_change(row, 'low')} and "
        text += f"{_change(row, 'high')}."
    return _ratio_claim(f"ecpm by {by}", {by: name}, row, text)


def _ratio_claim(kind: str, subject: dict[str, str], row: Any, text: str) -> Claim:
    low, high = float(row["low"]), float(row["high"])
    direction = direction_of(low, high, neutral=1.0)
    size = float(row["index"])
    return Claim(
        kind=kind, subject=subject, direction=direction, size=size, low=low, high=high, unit="ratio", text=text
    )


def _percent(row: Any) -> str:
    """Return the index of a row as `12% more (8% to 16%)`."""
    sign = 1 if row["index"] > 1 else -1
    low, high = sorted(sign * (row[name] - 1) for name in ("low", "high"))
    return f"{sign * (row['index'] - 1):.0%} {'more' if sign > 0 else 'less'} ({low:.0%} to {high:.0%})"


def _change(row: Any, bound: str) -> str:
    change = row[bound] - 1
    return f"{abs(change):.0%} {'more' if change > 0 else 'less'}"


def _degree(hhi: float) -> str:
    return "concentrated" if hhi >= CONCENTRATED else "spread" if hhi < SPREAD else "moderately concentrated"


def _plural(words: str, count: int) -> str:
    if count == 1:
        return words
    return words.removesuffix("y") + "ies" if words.endswith("y") else words + "s"
