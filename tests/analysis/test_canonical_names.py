"""Canonical names of networks and ad formats."""

from __future__ import annotations

import tomllib
from importlib import resources

import pandas as pd
import pytest
from pandas import DataFrame

from gamelens.analysis import ads, health
from gamelens.analysis.ads.canonical_names import canonical_name, countries_in
from gamelens.errors import BadQuery
from gamelens.simulator.events.event_json import VENDOR_FORMATS
from gamelens.simulator.scenarios.game_profile import Network
from support.said import said
from support.tidy_frames import tidy_frame

NETWORKS = {
    "com.google.ads.mediation.applovin.AppLovinMediationAdapter": "AppLovin",
    "com.google.ads.mediation.applovin.mediation.ApplovinAdapter": "AppLovin",
    "APPLOVIN_EXCHANGE": "AppLovin",
    "com.google.ads.mediation.admob.AdMobAdapter": "Google AdMob",
    "googleadmob": "Google AdMob",
    "ADMOB_BIDDING": "Google AdMob",
    "GADMAdapterGoogleAdMobAds": "Google AdMob",
    "Google Ad Manager": "Google Ad Manager",
    "com.google.ads.mediation.facebook.FacebookMediationAdapter": "Meta",
    "GADMediationAdapterFacebook": "Meta",
    "FACEBOOK_MEDIATE": "Meta",
    "Meta Audience Network": "Meta",
    "com.google.ads.mediation.unity.UnityAdapter": "Unity Ads",
    "UnityAds": "Unity Ads",
    "ALByteDanceMediationAdapter": "Pangle",
    "ironSource": "ironSource",
    "IRONSOURCE_BIDDING": "ironSource",
    "com.vungle.mediation.VungleAdapter": "Vungle",
    "Liftoff Monetize": "Vungle",
    "com.google.ads.mediation.fyber.FyberMediationAdapter": "Digital Turbine",
}
FORMATS = {
    "REWARDED": "rewarded_video",
    "rewarded_video": "rewarded_video",
    "Rewarded Video": "rewarded_video",
    "INTER": "interstitial",
    "INTERSTITIAL": "interstitial",
    "REWARDED_INTERSTITIAL": "rewarded_interstitial",
    "LEADER": "banner",
    "MREC": "medium_rectangle",
    "APPOPEN": "app_open",
    "offerwall": "offer_wall",
}


def named(column: str, *values: str | None) -> DataFrame:
    return ads.with_canonical_names(tidy_frame("ilrd_revenue", **{column: values}, ilrd_revenue=[1.0] * len(values)))


@pytest.mark.parametrize(("raw", "name"), NETWORKS.items())
def test_spellings_of_a_network_have_one_name(raw: str, name: str) -> None:
    """Adapter classes of Android and iOS, and spellings of MAX and LevelPlay."""
    assert named("ilrd_network_name", raw)["network"].tolist() == [name]


@pytest.mark.parametrize(("raw", "name"), FORMATS.items())
def test_spellings_of_a_format_have_the_name_of_ad_events(raw: str, name: str) -> None:
    """Impressions have the names of `ad_type`, whatever their SDK writes."""
    assert named("ilrd_adunit_format", raw)["format"].tolist() == [name]


def test_the_table_has_every_name_of_the_shipped_scenarios() -> None:
    """A network has one name in impressions, in ad events and in its scenario."""
    folder = resources.files("gamelens.simulator.scenarios") / "shipped"
    scenarios = [tomllib.loads(file.read_text("utf-8")) for file in folder.iterdir() if file.name.endswith(".toml")]
    games = [game for scenario in scenarios for studio in scenario.get("studio", []) for game in studio.get("game", [])]
    tables = [table for game in games for table in game.get("ads", {}).get("network", [])]
    assert len(tables) > 10
    for network in (Network(**table) for table in tables):
        written = [network.reported_name, network.sdk_name, network.name]
        assert ads.unlisted_names(tidy_frame(ilrd_network_name=written)) == []
        assert named("ilrd_network_name", *written)["network"].nunique() == 1


def test_the_table_has_every_format_of_the_simulated_vendors() -> None:
    """Three vendors write the formats of `ad_type` in their own way."""
    for formats in VENDOR_FORMATS.values():
        assert named("ilrd_adunit_format", *formats.values())["format"].tolist() == [*formats]


def test_the_raw_names_stay_beside_the_canonical_ones() -> None:
    """The frame keeps its columns, rows and receipt."""
    frame = named("ilrd_network_name", "googleadmob", "AdMob")
    assert frame["ilrd_network_name"].tolist() == ["googleadmob", "AdMob"]
    assert frame["network"].dtype == "category"
    assert frame.attrs["gamelens"]["asked"]["metric"] == "ilrd_revenue"


def test_an_unlisted_name_stays_as_it_is_and_is_reported() -> None:
    """A part of a class path is not a name: an unlisted adapter of Google's mediation is not Google."""
    raw = ["NewNet", "com.google.ads.mediation.newnet.NewNetAdapter", "Unity Ads"]
    assert named("ilrd_network_name", *raw)["network"].tolist() == raw
    assert ads.unlisted_names(tidy_frame(ilrd_network_name=raw)) == sorted(raw[:2])


def test_your_own_names_win() -> None:
    """They apply to any spelling, and None makes a name unknown."""
    frame = tidy_frame(ilrd_network_name=["new_net", "AdMob", "house ads"], ilrd_adunit_format=["X", "INTER", None])
    own = ads.with_canonical_names(
        frame, networks={"NewNet": "New Net", "admob": "Google", "House Ads": None}, formats={"x": "banner"}
    )
    assert own["network"].astype("object").where(own["network"].notna(), None).tolist() == ["New Net", "Google", None]
    assert own["format"].astype("object").tolist()[:2] == ["banner", "interstitial"]


def test_an_unknown_network_has_a_reason() -> None:
    """A network without permission writes `undisclosed`; some SDKs name no network."""
    frame = named("ilrd_network_name", "undisclosed", None, "unknown", "AdMob")
    assert frame["network"].isna().tolist() == [True, True, True, False]
    reasons = frame["network_unknown"].astype("object")
    assert reasons.where(reasons.notna(), None).tolist() == ["undisclosed", "not reported", "not reported", None]


def test_the_row_of_all_other_values_is_no_unknown_network() -> None:
    """`(other)` is the rest of a top, and stays visible."""
    assert named("ilrd_network_name", "(other)")["network"].tolist() == ["(other)"]


def test_a_name_of_punctuation_alone_is_a_name() -> None:
    """Names come from outside; one without letters must not become unknown."""
    assert named("ilrd_network_name", "☆")["network"].tolist() == ["☆"]


def test_ad_events_and_impressions_join_on_the_network() -> None:
    """`ad_sdk_name` is lower case without spaces, `ilrd_network_name` is not."""
    shown = ads.with_canonical_names(tidy_frame(ad_sdk_name=["unityads", "googleadmob"], event_count=[3, 4]))
    paid = ads.with_canonical_names(
        tidy_frame(
            ilrd_network_name=["Unity Ads", "com.google.ads.mediation.admob.AdMobAdapter"], ilrd_revenue=[1.0, 2.0]
        )
    )
    both = shown.astype({"network": "object"}).merge(paid.astype({"network": "object"}), on="network")
    assert both[["event_count", "ilrd_revenue"]].to_numpy().tolist() == [[3, 1.0], [4, 2.0]]


def test_a_frame_without_names_is_refused() -> None:
    """The message lists the dimensions to query by."""
    with pytest.raises(BadQuery, match="ilrd_network_name"):
        ads.with_canonical_names(tidy_frame(country_code=["US"], sum=[1.0]))


def test_an_empty_frame_gets_empty_columns() -> None:
    """The columns are there without a row."""
    empty = named("ilrd_network_name", "AdMob")[:0]
    assert len(ads.with_canonical_names(empty)) == 0
    assert ads.with_canonical_names(empty)["network"].dtype == "category"


def test_analyses_merge_the_spellings_of_one_network() -> None:
    """Earnings and fill rates by network are those of all its spellings."""
    frame = tidy_frame(
        "ilrd_revenue",
        ilrd_network_name=["AdMob", "googleadmob"],
        ilrd_revenue_event_count=[1, 1],
        ilrd_revenue=[1.0, 2.0],
    )
    assert ads.earnings(frame, by="network")["ad_revenue"].tolist() == [3.0]
    events = tidy_frame(
        "event_count", ad_action=["request", "show"], ad_sdk_name=["admob", "googleadmob"], event_count=[4, 1]
    )
    assert ads.fill_rates(events, by="network")["fill_rate"].tolist() == [0.25]


def test_formats_of_two_vendors_are_one_format() -> None:
    """Of three vendors that write rewarded video differently, no spelling has its share: 68 %, not 32.5 %."""
    frame = tidy_frame(
        "ilrd_revenue",
        ilrd_adunit_format=["REWARDED", "rewarded_video", "REWARDED_VIDEO", "INTER"],
        ilrd_revenue_event_count=[10] * 4,
        ilrd_revenue=[32.5, 20.0, 15.5, 32.0],
    )
    _, top = said(ads.earnings(frame, by="format"))
    assert (top.subject, top.size) == ("rewarded_video", 0.68)


def test_concentration_counts_networks_and_not_spellings() -> None:
    """Five equal spellings are spread or not, three networks behind them are concentrated."""
    spellings = ["AppLovin", "com.applovin.mediation.ApplovinAdapter", "AdMob", "googleadmob", "Unity Ads", "unityads"]
    frame = tidy_frame(
        "ilrd_revenue", ilrd_network_name=spellings, ilrd_revenue_event_count=[1] * 6, ilrd_revenue=[1.0] * 6
    )
    held = ads.concentration(frame, by="ilrd_network_name").iloc[0]
    assert (held["values"], held["hhi"]) == (3, pytest.approx(1 / 3))


def test_health_watches_the_share_of_a_network_under_one_name() -> None:
    """A change of the adapter's name is not a fall of its network."""
    days = [f"2026-11-{day:02}" for day in range(1, 11)]
    frame = tidy_frame(
        "ilrd_revenue",
        timestamp=days * 2,
        game=["A"] * 20,
        ilrd_network_name=["AdMob"] * 5 + ["googleadmob"] * 5 + ["Unity Ads"] * 10,
        ilrd_revenue_event_count=[300] * 20,
        ilrd_revenue=[1.0] * 20,
    )
    series = health.daily([frame])
    shares = series[series["watch"] == "network_share"]
    assert set(shares["segment"]) == {"Google AdMob", "Unity Ads"}
    assert shares["value"].tolist() == [0.5] * 20


def test_series_of_other_dimensions_keep_their_names() -> None:
    """A country called like a network is a country."""
    column = pd.Series(["unity", "IN"], name="country_code")
    assert ads.canonical_values(column) is column


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("holidays_DE_2026.csv", ["DE"]),
        ("Federal holidays, United States of America", ["US"]),
        ("Jours fériés en Côte d'Ivoire", ["CI"]),
        ("public holidays in South Korea and Japan", ["JP", "KR"]),
        ("วันหยุดธนาคารในประเทศไทย ประจำปี 2569", ["TH"]),
        ("中国法定节假日", ["CN"]),
        ("in no it at us", []),
        ("NBP table A, 2026", []),
    ],
)
def test_a_title_names_countries(text: str, codes: list[str]) -> None:
    assert sorted(countries_in(text).values()) == codes


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("R.-U.", "GB"),
        ("R.U.", "GB"),
        ("U.S.", "US"),
        ("U.K.", "GB"),
        ("RU", "RU"),
        ("P.-B.", None),
        ("E.U.", None),
        ("EE. UU.", "US"),
        ("中国香港", "HK"),
        ("Hong Kong, China", "HK"),
        ("中国", "CN"),
    ],
)
def test_initials_of_a_country_are_no_code(text: str, code: str | None) -> None:
    """Royaume-Uni is not Russia; what a name says of China is no part of it."""
    assert canonical_name(text, "country") == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("China (Hong Kong)", "HK"),
        ("China (Taiwan)", "TW"),
        ("China [Macao]", "MO"),
        ("China (HK)", "HK"),
        ("China, Hong Kong SAR", "HK"),
        ("China - Hong Kong", "HK"),
        ("Hong Kong SAR, China", "HK"),
        ("Taiwan (China)", "TW"),
        ("United States (Puerto Rico)", "PR"),
        ("US - Puerto Rico", "PR"),
        ("Estados Unidos (Guam)", "GU"),
        ("France (Réunion)", "RE"),
        ("Frankreich – Martinique", "MQ"),
        ("Dänemark (Grönland)", "GL"),
        ("Royaume-Uni (Jersey)", "JE"),
        ("Нидерланды (Аруба)", "AW"),
        ("中国（香港）", "HK"),
        ("Korea (South)", "KR"),
        ("Congo (Kinshasa)", "CD"),
        ("Germany (DE)", "DE"),
        ("Switzerland (FR)", "CH"),
        ("United States (USD)", "US"),
        ("US - United States", "US"),
        ("Netherlands (the)", "NL"),
        ("US, PR", None),
        ("Australia, New Zealand", None),
    ],
)
def test_a_place_within_another_is_the_narrower_one(text: str, code: str | None) -> None:
    """Brackets that name a place with a code of its own are no remark on the name before them."""
    assert canonical_name(text, "country") == code
