"""Rates of all currencies in US dollars, rounded, as of 2026-11-01.

The sandbox converts with this table only, so that the same events give the same revenue on every machine and day. Our
choice: one fixed table instead of daily rates. Rates have at most nine decimals, because sums are computed in integers
of `RATE_SCALE`. Wire 3.8, Currencies.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

RATE_SCALE: Final = 10**9
"""Scale of the integer rates."""

RATES_AS_OF: Final = "2026-11-01"
"""The day of the rates."""

_TABLE: Final = """
AED .2723   AFN .0151   ALL .0121   AMD .00261  ANG .5587   AOA .00109  ARS .00069  AUD .6564   AWG .5556
AZN .5882   BAM .5942   BBD .5      BDT .0082   BGN .5942   BHD 2.6525  BIF .00034  BMD 1       BND .7701
BOB .1447   BRL .1868   BSD 1       BTC 101500  BTN .0113   BWP .0748   BYN .2934   BZD .4979   CAD .7132
CDF .00046  CHF 1.2436  CLF 43.1    CLP .00106  CNH .1404   CNY .1405   COP .00026  CRC .00199  CUC 1
CUP .0388   CVE .0105   CZK .0478   DJF .0056   DKK .1556   DOP .0156   DZD .0077   EGP .0212   ERN .0667
ETB .0065   EUR 1.1621  FJD .4389   FKP 1.3144  GBP 1.3144  GEL .3693   GGP 1.3144  GHS .0914   GIP 1.3144
GMD .0136   GNF .000115 GTQ .1306   GYD .0048   HKD .1287   HNL .038    HRK .1542   HTG .0077   HUF .00302
IDR .00006  ILS .3079   IMP 1.3144  INR .0113   IQD .00076  IRR .0000238 ISK .0079  JEP 1.3144  JMD .0062
JOD 1.4104  JPY .0065   KES .0077   KGS .0114   KHR .00025  KMF .0024   KPW .0011   KRW .00069  KWD 3.2584
KYD 1.2     KZT .0019   LAK .000046 LBP .0000112 LKR .0033  LRD .0055   LSL .0578   LYD .1835   MAD .1077
MDL .0588   MGA .00022  MKD .0189   MMK .000476 MNT .00028  MOP .125    MRU .025    MUR .0218   MVR .0649
MWK .00058  MXN .0543   MYR .2396   MZN .0156   NAD .0578   NGN .0007   NIO .0272   NOK .0984   NPR .0071
NZD .5649   OMR 2.5974  PAB 1       PEN .2967   PGK .2358   PHP .017    PKR .0036   PLN .274    PYG .000142
QAR .2747   RON .2286   RSD .0099   RUB .0123   RWF .00069  SAR .2667   SBD .1215   SCR .0719   SDG .0017
SEK .1056   SGD .7701   SHP 1.3144  SLE .0431   SLL .0000431 SOS .00175 SRD .026    SSP .0077   STD .0000474
STN .0474   SVC .1143   SYP .0000769 SZL .0578  THB .0309   TJS .1083   TMT .2857   TND .3404   TOP .4179
TRY .0236   TTD .1474   TWD .0322   TZS .00041  UAH .0238   UGX .00028  USD 1       UYU .0251   UZS .000083
VES .0044   VND .000038 VUV .0082   WST .3601   XAF .00177  XAG 48.7    XAU 4002    XCD .37     XDR 1.36
XOF .00177  XPD 1440    XPF .0097   XPT 1570    YER .0042   ZAR .0578   ZMW .0453   ZWL .0031
"""

_WORDS: Final = _TABLE.split()
USD_PER_UNIT: Final[dict[str, Decimal]] = {
    code: Decimal(rate) for code, rate in zip(_WORDS[::2], _WORDS[1::2], strict=True)
}
"""US dollars for one unit, by currency code."""

_REPLACED: Final = """
ADP EUR AFA AFN AON AOA ARA ARS ARP ARS ATS EUR AZM AZN BEF EUR BGL BGN BRC BRL BRE BRL BRN BRL BRR BRL BYB BYN BYR BYN
CSD RSD CYP EUR DEM EUR ECS USD EEK EUR ESP EUR FIM EUR FRF EUR GHC GHS GRD EUR GWP XOF IEP EUR ITL EUR LTL EUR LUF EUR
LVL EUR MGF MGA MRO MRU MTL EUR MXP MXN MZM MZN NLG EUR PEI PEN PLZ PLN PTE EUR ROL RON RUR RUB SDD SDG SIT EUR SKK EUR
SRG SRD TMM TMT TPE USD TRL TRY UAK UAH UYP UYU VEB VES VED VES VEF VES YUM RSD ZMK ZMW ZWD ZWL ZWG ZWL ZWN ZWL ZWR ZWL
XCG ANG
"""
_PAIRS: Final = _REPLACED.split()
REPLACED: Final[dict[str, str]] = dict(zip(_PAIRS[::2], _PAIRS[1::2], strict=True))
"""Codes of older and newer lists that have no rate here, each with the code of the same country that has one."""


def why_no_currency(code: object) -> str | None:
    """Return in words why *code* is not one of the currencies, or None if it is one."""
    if not isinstance(code, str) or code in USD_PER_UNIT:
        return None
    if code in REPLACED:
        return f"{code} is of another list of currencies: here the country has {REPLACED[code]}"
    if code.strip().upper() in USD_PER_UNIT:
        return f"the currency is written {code.strip().upper()}, in capitals and without blanks"
    return "the currency is none of the three-letter codes that have a rate"


SCALED_RATES: Final[dict[str, int]] = {code: int(rate * RATE_SCALE) for code, rate in USD_PER_UNIT.items()}
"""US dollars for one unit times `RATE_SCALE`, exact, by currency code."""
