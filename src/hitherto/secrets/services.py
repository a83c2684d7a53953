"""Tokens of services, which begin like nothing else: one row each. Pure.

They are looked for by how they begin, and only there by a pattern: a hundred of them cost little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEX, _BIG, _ALNUM, _WEB, _BASE64 = "[0-9A-Fa-f]", "[0-9A-Z]", "[0-9A-Za-z]", r"[\w-]", "[0-9A-Za-z+/]"
_UUID = rf"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}"


class Service(NamedTuple):
    """The tokens of one service: how they begin, and what follows that."""

    name: str
    beginnings: tuple[str, ...]
    rest: re.Pattern[str]


def _service(name: str, beginnings: str, rest: str) -> Service:
    return Service(name, tuple(beginnings.split()), re.compile(rest))


def _token(name: str, beginnings: str, alphabet: str, least: int, most: int) -> Service:
    """Tokens whose rest is drawn from an alphabet, at least and at most so many."""
    ended = "(?![0-9A-Za-z])" if least == most else ""
    return _service(f"{name} token", beginnings, f"{alphabet}{{{least},{most}}}{ended}")


SERVICES = (
    _service("1password token", "A3-", rf"{_BIG}{{6}}-(?:{_BIG}{{11}}|{_BIG}{{6}}-{_BIG}{{5}})(?:-{_BIG}{{5}}){{3}}"),
    _token("1password", "ops_eyJ", "[0-9A-Za-z+/=_%-]", 100, 2000),
    _token("adobe", "p8e-", _ALNUM, 32, 32),
    _service("airtable token", "pat", rf"{_ALNUM}{{14}}\.{_HEX}{{64}}"),
    _token("alibaba", "LTAI", _ALNUM, 16, 24),
    _token("artifactory", "AKCp", _ALNUM, 60, 80),
    _token("artifactory", "cmVmdGtuO", _ALNUM, 50, 60),
    _service("asana token", "1/ 2/", rf"\d{{14,18}}(?:/\d{{14,18}})?:{_HEX}{{32}}"),
    _service("authress token", "sc_ ext_ scauth_ authress_", rf"{_ALNUM}{{5,30}}\.{_ALNUM}{{4,6}}\.acc[_-][\w-]{{10,32}}\.[\w+/=%-]{{30,240}}"),
    _token("bitbucket", "ATBB", _ALNUM, 24, 40),
    _token("brevo", "xkeysib- xsmtpsib-", _WEB, 64, 120),
    _token("buildkite", "bkua_ bkaj_ bkpt_", _ALNUM, 30, 60),
    _token("circleci", "CCIPAT_ CCIPRJ_", r"\w", 30, 100),
    _token("clickhouse", "4b1d", _ALNUM, 38, 38),
    _token("clojars", "CLOJARS_", _ALNUM, 50, 70),
    _service("cloudflare token", "v1.0-", rf"{_HEX}{{24}}-{_HEX}{{100,200}}"),
    _token("contentful", "CFPAT-", _WEB, 40, 50),
    _token("crates.io", "cio", _ALNUM, 32, 32),
    _token("defined", "dnkey-", "[\\w=-]", 60, 100),
    _token("duffel", "duffel_test_ duffel_live_", r"[\w=%-]", 40, 140),
    _service("dynatrace token", "dt0c01. dt0s01. dt0s16.", rf"{_ALNUM}{{20,30}}\.{_ALNUM}{{60,68}}"),
    _token("easypost", "EZAK EZTK", _ALNUM, 54, 54),
    _token("e2b", "e2b_", _HEX, 36, 48),
    _token("facebook", "EAA", _ALNUM, 80, 400),
    _token("firecrawl", "fc-", _HEX, 32, 32),
    _token("flutterwave", "FLWSECK_TEST- FLWPUBK_TEST- FLWSECK- FLWPUBK-", "[0-9A-Za-z-]", 12, 40),
    _token("fly", "fo1_", _WEB, 40, 50),
    _token("fly", "fm1a_ fm1r_ fm2_", r"[0-9A-Za-z+/=_,%-]", 60, 2000),
    _token("frame.io", "fio-u-", r"[\w=%-]", 60, 200),
    _token("grafana", "eyJrIjoi", "[0-9A-Za-z=%]", 60, 400),
    _token("grafana", "glc_ glsa_", r"[0-9A-Za-z+/=_%-]", 32, 600),
    _service("harness token", "pat. sat.", r"[\w-]{22}\.[0-9A-Za-z]{24}\.[0-9A-Za-z]{20}"),
    _token("heroku", "HRKU-", _WEB, 36, 70),
    _token("honeycomb", "hcaik_ hcamk_ hcaic_", _ALNUM, 30, 80),
    _service("hubspot token", "pat-na1- pat-na2- pat-eu1- pat-ap1-", _UUID),
    _token("infracost", "ico-", _ALNUM, 32, 32),
    _token("intra42", "s-s4t2ud- s-s4t2af-", _HEX, 64, 64),
    _token("jina", "jina_", _WEB, 40, 80),
    _token("langsmith", "lsv2_pt_ lsv2_sk_", r"\w", 32, 60),
    _service("launchdarkly token", "sdk- api- mob-", _UUID),
    _token("mapbox", "sk.eyJ", r"[\w.-]", 40, 200),
    _token("mercado pago", "APP_USR-", "[0-9a-f-]", 40, 90),
    _token("neon", "napi_", _ALNUM, 40, 80),
    _token("netlify", "nfp_ nfc_", _ALNUM, 30, 50),
    _token("notion", "ntn_ secret_", _ALNUM, 40, 50),
    _token("nuget", "oy2", "[a-z0-9]", 43, 43),
    _token("octopus", "API-", _BIG, 25, 30),
    _token("openshift", "sha256~", _WEB, 43, 43),
    _token("paypal", "access_token$production$ access_token$sandbox$", "[0-9a-z$]", 32, 60),
    _token("pinecone", "pcsk_", r"\w", 40, 100),
    _token("plaid", "access-production- access-sandbox- access-development-", "[0-9a-f-]", 32, 40),
    _token("planetscale", "pscale_tkn_ pscale_oauth_ pscale_pw_", r"[\w=.%-]", 32, 160),
    _token("prefect", "pnu_ pnb_", _ALNUM, 36, 36),
    _token("pulumi", "pul-", _HEX, 40, 40),
    _token("razorpay", "rzp_live_ rzp_test_", _ALNUM, 14, 14),
    _token("readme", "rdme_", "[a-z0-9]", 60, 80),
    _token("render", "rnd_", _ALNUM, 28, 40),
    _service("resend token", "re_", rf"{_ALNUM}{{8}}_{_ALNUM}{{20,28}}"),
    _token("scalingo", "tk-us-", _WEB, 48, 48),
    _token("settlemint", "sm_aat_ sm_pat_ sm_sat_", _ALNUM, 16, 16),
    _token("sonar", "sqp_ squ_ sqa_", _HEX, 40, 40),
    _service("sourcegraph token", "sgp_local_ sgp_", rf"(?:{_HEX}{{16}}_)?{_HEX}{{40}}"),
    _token("square", "EAAA sq0atp- sq0csp-", _WEB, 22, 100),
    _token("tavily", "tvly-", _WEB, 30, 60),
    _token("typeform", "tfp_", r"[\w.=%-]", 40, 150),
    _token("twitter", "AAAAAAAAAAAAAAAAAAAAA", "[0-9A-Za-z%]", 60, 120),
    _token("vercel", "vcp_ vci_ vca_ vcr_ vck_", _ALNUM, 24, 60),
    _token("yandex", "AQVN", _WEB, 35, 38),
    _service("openai key", "sk-", rf"(?!ant-)(?=[\w-]{{0,60}}{_ALNUM}{{16}})(?=[A-Za-z_-]{{0,60}}[0-9])[\w-]{{20,250}}"),
    _service("aws key", "AKIA ASIA ABIA ACCA", rf"{_BIG}{{16}}(?![0-9A-Za-z])"),
    _service("aws key", "A3T", rf"{_BIG}{{17}}(?![0-9A-Za-z])"),
    _service("google key", "AIza", r"[\w-]{35}"),
    _token("google", "ya29. GOCSPX- 1//0", _WEB, 20, 400),
    _token("slack", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.xoxb- xoxe.xoxp- xoxe.xoxB- xoxe.xoxP- xapp-", "[0-9A-Za-z%-]", 10, 250),
    _service("twilio key", "SK", rf"{_HEX}{{32}}(?![0-9A-Za-z])"),
    _service("sendgrid key", "SG.", r"(?=[\w.=-]{0,60}[0-9])[\w.=%-]{48,200}"),
    _service("mailgun key", "key- pubkey-", r"[0-9a-f]{32}(?![0-9A-Za-z])"),
    _token("hugging face", "hf_ api_org_", _ALNUM, 28, 60),
    _service("model provider key", "gsk_ xai- pplx- r8_ nvapi- fw_ csk-", r"[\w-]{22,200}"),
    _token("digitalocean", "dop_v1_ doo_v1_ dor_v1_", _HEX, 40, 80),
    _service("databricks token", "dapi", r"[0-9a-f]{32}(?:-\d)?(?![0-9A-Za-z])"),
    _token("shopify", "shpat_ shpca_ shppa_ shpss_", _HEX, 30, 40),
    _token("atlassian", "ATATT3 ATCTT3", r"[\w=%-]", 40, 500),
    _token("vault", "hvs. hvb.", _WEB, 20, 300),
    _service("vault token", "s.", r"(?=(?:[A-Za-z]{0,22}[0-9]){2})[A-Za-z0-9]{24}(?![\w.(-])"),
    _service("supabase key", "sbp_ sb_secret_", r"[\w-]{16,80}"),
    _service("json web token", "ey", r"[A-Za-z0-9][\w-]{8,4000}\.ey[\w/\\-]{8,16000}\.[\w/-]{0,4000}={0,2}"),
    _service("json web token", "eyJ", r"[\w-]{8,4000}\.[\w-]{8,16000}(?:\.[\w-]{0,4000}){1,3}"),
    _service("json web token", "ZXlK", r"(?:[A-Za-z0-9+/_\\-]|[\r\n]{1,2}(?=[A-Za-z0-9+/_-])){40,16000}={0,2}"),
    _service("private key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{50,60}"),
    _token("doppler", "dp.pt. dp.st. dp.sa. dp.ct.", r"[\w.-]", 32, 100),
    _token("linear", "lin_api_ lin_oauth_", _ALNUM, 30, 80),
    _token("figma", "figd_ figu_", _WEB, 30, 80),
    _token("sentry", "sntrys_ sntryu_", r"[\w=+/%-]", 18, 600),
    _token("new relic", "NRAK- NRJS- NRII- NRRA-", "[0-9A-Za-z-]", 18, 48),
    _token("postman", "PMAK-", "[0-9A-Fa-f-]", 40, 64),
    _token("rubygems", "rubygems_", _HEX, 40, 60),
    _service("tailscale token", "tskey-", r"[a-z]{2,10}-[\w-]{18,100}"),
    _token("posthog", "phx_ phs_", _ALNUM, 30, 60),
    _token("shippo", "shippo_live_ shippo_test_", _HEX, 30, 50),
)  # fmt: skip

_LONG = re.compile(r"[A-Za-z0-9_+%=-]{14,}")
"""What every token has: a long word, with a digit, or still longer."""
LONGER = 22
BEFORE = 40
_JOINTS = frozenset(".$:/~")
"""What may stand between how a token begins and its long word."""
_STARTS = re.compile(r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))[A-Za-z0-9]")
_DIGIT = re.compile("[0-9]")


def _by_two() -> dict[str, list[tuple[str, Service]]]:
    out: dict[str, list[tuple[str, Service]]] = {}
    for service in SERVICES:
        for beginning in service.beginnings:
            out.setdefault(beginning[:2], []).append((beginning, service))
    return out


_BY_TWO = _by_two()


def service_tokens(text: str) -> Iterator[tuple[int, int, str]]:
    """Where the tokens of services stand in a text, and what they are called."""
    done = 0
    for word in _LONG.finditer(text):
        start, end = word.span()
        if end <= done or (end - start < LONGER and not _DIGIT.search(text, start, end)):
            continue
        if text[start - 1 : start] in _JOINTS:
            start = max(start - BEFORE, 0)
        for first in _STARTS.finditer(text, max(start, done), end):
            at = first.start()
            if at >= done and (match := _token_at(text, at)) is not None:
                done = match[0]
                yield at, *match


def _token_at(text: str, at: int) -> tuple[int, str] | None:
    """Where the token ends that begins here, and what it is called."""
    for beginning, service in _BY_TWO.get(text[at : at + 2], ()):
        if text.startswith(beginning, at) and (match := service.rest.match(text, at + len(beginning))):
            return match.end(), service.name
    return None
