"""The kinds of secrets that are known by their form: one row each. Pure.

Every pattern is linear in the length of the text: what may be long is bounded, and nothing open stands at the left.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# A secret does not begin within a word; in JSON inside a text, the n of \n is no part of the word behind it.
EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"


class Kind(NamedTuple):
    """One kind of secret. A text that has none of the hints has no such secret; small letters stand for capitals too
    if the pattern makes no difference between them.

    What is replaced is the group `secret` of the pattern, or all of what it matches.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _kind(name: str, hints: str, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> Kind:
    return Kind(name, tuple(hints.split()), re.compile(EDGE + pattern, flags))


def _marked(name: str, hints: str, pattern: str) -> Kind:
    """A kind that begins like nothing else, and so may stand anywhere."""
    return Kind(name, tuple(hints.split()), re.compile(pattern))


KINDS = (
    _marked("hitherto token", "hth_ rcl_", r"(?:hth|rcl)_[A-Za-z0-9_-]{16,200}"),
    _marked(
        "private key",
        "-----BEGIN",
        r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:(?!-----BEGIN)[\s\S]){0,20000}?-----END [A-Z0-9 ]{0,40}-----|(?:\s|\\[nr]|[A-Za-z0-9+/=]{16,128}){0,400})",
    ),
    _kind("private key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{50,60}"),
    _marked("anthropic key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{16,250}"),
    _kind("openai key", "sk-", r"sk-(?=[\w-]{0,60}[A-Za-z0-9]{16})(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20,250}"),
    _marked("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,255}"),
    _marked("github token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,255}"),
    _marked("gitlab token", "glpat- gldt- glrt- glft- glsoat- glcbt- glptt-", r"gl(?:pat|dt|rt|ft|soat|cbt|ptt)-[\w-]{18,100}"),
    _kind("aws key", "AKIA ASIA ABIA ACCA", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _kind("google key", "AIza", r"AIza[0-9A-Za-z_-]{35}"),
    _kind("google token", "ya29. GOCSPX- 1//0", r"(?:ya29\.[\w-]{20,400}|GOCSPX-[\w-]{20,60}|1//0[\w-]{30,200})"),
    _kind("slack token", "xox xapp-", r"(?:xox[a-z]-|xoxe\.xox[a-z]-|xapp-\d-)[A-Za-z0-9-]{10,250}"),
    _kind("slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?P<secret>(?:services|workflows)/[\w/]{20,120})"),
    _kind("discord webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{8,24}/[\w-]{20,100})"),
    _marked("discord token", ".", r"[MNO](?<![\w-][MNO])[\w-]{22,27}\.[\w-]{6}\.[\w-]{27,45}(?![\w-])"),
    _marked("stripe key", "sk_live_ sk_test_ rk_live_ rk_test_ whsec_", r"(?:[sr]k_(?:live|test)_[A-Za-z0-9]{10,250}|whsec_[A-Za-z0-9+/=]{20,120})"),
    _kind("telegram token", ":AA", r"\d{8,10}:AA[\w-]{32,35}(?![\w-])"),
    _kind("twilio key", "SK", r"SK[0-9a-f]{32}(?![0-9A-Za-z])"),
    _kind("sendgrid key", "SG.", r"SG\.[\w-]{16,32}\.[\w-]{16,64}"),
    _kind("mailgun key", "key-", r"key-[0-9a-f]{32}(?![0-9A-Za-z])"),
    _marked("npm token", "npm_", r"npm_[A-Za-z0-9]{30,60}"),
    _marked("pypi token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,400}"),
    _kind("hugging face token", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{28,60}"),
    _kind("model provider key", "gsk_ xai- pplx- r8_ nvapi- fw_ csk-", r"(?:gsk_|xai-|pplx-|r8_|nvapi-|fw_|csk-)[A-Za-z0-9_-]{22,200}"),
    _kind("digitalocean token", "_v1_", r"do[opr]_v1_[0-9a-f]{40,80}"),
    _kind("databricks token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?(?![0-9A-Za-z])"),
    _kind("shopify token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{30,40}"),
    _kind("atlassian token", "ATATT3 ATCTT3", r"AT[AC]TT3[A-Za-z0-9_=-]{40,400}"),
    _kind("vault token", "hvs. hvb.", r"hv[sb]\.[\w-]{20,300}"),
    _kind("terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{50,100}"),
    _marked("docker token", "dckr_pat_ dckr_oat_", r"dckr_[po]at_[\w-]{20,100}"),
    _kind("supabase key", "sbp_ sb_secret_", r"(?:sbp_[0-9a-f]{36,60}|sb_secret_[\w-]{16,80})"),
    _kind(
        "service token",
        "lin_api_ ntn_ figd_ dp.pt. dp.st. dp.sa. dp.ct. pscale_ sntrys_ sntryu_ glc_ glsa_ NRAK- PMAK- sq0 EAAAA fm2_ ops_eyJ rubygems_ tskey- sgp_ phx_ shippo_",
        r"(?:lin_api_|ntn_|figd_|dp\.(?:pt|st|sa|ct)\.(?:[a-z0-9_-]{2,35}\.)?|pscale_(?:tkn|pw|oauth)_"
        r"|sntry[su]_|glc_|glsa_|NRAK-|PMAK-|sq0(?:atp|csp)-|EAAAA|fm2_|ops_eyJ|rubygems_|tskey-[a-z]{2,10}-|sgp_"
        r"|phx_|shippo_(?:live|test)_)[A-Za-z0-9_=+/.-]{18,600}",
    ),
    _kind("json web token", "eyJ", r"eyJ[\w-]{8,4000}\.[\w-]{8,16000}(?:\.[\w-]{0,4000}){1,3}"),
    _kind(
        "authorization header",
        "authorization api-key auth-token access-token csrf-token",
        r"(?:proxy-)?(?:authorization|x-(?:api-key|auth-token|access-token|csrf-token|goog-api-key))"
        r"""(?:\\?["'])?\s{0,4}[:=]\s{0,4}(?:\\?["'])?(?:(?:bearer|basic|token|digest|negotiate|apikey)\s{1,4})?"""
        r"""(?!(?:bearer|basic|token)\b)(?P<secret>(?=[A-Za-z+/=_.~:-]{0,60}[0-9])[A-Za-z0-9+/=_.~:-]{8,4000})""",
        re.IGNORECASE,
    ),
    _kind("bearer token", "bearer", r"bearer\s{1,4}(?P<secret>(?=[A-Za-z+/=_.~-]{0,60}[0-9])[A-Za-z0-9+/=_.~-]{16,4000})", re.IGNORECASE),
    _kind("cookie", "cookie", r"""cookie(?:\\?["'])?:\s{0,4}(?:\\?["'])?(?P<secret>[\w.-]{1,80}=[^\s;"'\\]{8,4000}(?:;\s?[\w.-]{1,80}=[^\s;"'\\]{0,4000}){0,40})""", re.IGNORECASE),
    _marked("password in a url", "://", r"://[^\s:/@\"'<>]{0,100}:(?![${<*%])(?P<secret>[^\s/@\"'<>]{1,200})@"),
    _marked("password in a url", "://", r"://(?=[A-Za-z_-]{0,60}[0-9])(?P<secret>[A-Za-z0-9_-]{20,200})(?::[^\s/@\"'<>]{0,40})?@"),
    _kind("signed url", "sig= signature= token=", r"(?:sig|signature|x-(?:amz|goog)-signature|x-amz-security-token)=(?P<secret>(?=[A-Za-z_%+/=-]{0,60}[0-9])[\w%+/=-]{20,2000})", re.IGNORECASE),
    _kind("password of a login", "login", r"login\s{1,8}\S{1,100}\s{1,8}password\s{1,8}(?P<secret>\S{4,200})"),
    _kind("command line password", "-u --user", r"""(?:curl|wget|http)\b[^\n]{0,300}?\s(?:-u|--user)[ =]{0,3}["']?[^\s:"']{1,64}:(?![$<*{])(?P<secret>[^\s"']{4,200})"""),
)  # fmt: skip
"""In the order in which they are believed: where two overlap, the earlier gives the name."""
