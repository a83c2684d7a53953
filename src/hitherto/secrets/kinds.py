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
        r"-----BEGIN[A-Za-z0-9 _-]{0,100}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:(?!-----BEGIN)[\s\S]){0,20000}?(?:-----END [A-Z0-9 ]{0,40}|KEY(?: BLOCK)?)-----|(?:\s|\\[nr]|[A-Za-z0-9+/=]{16,128}){0,400})",
    ),
    _kind("private key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[0-9A-Z]{50,60}"),
    _marked("anthropic key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{16,250}"),
    _marked("github token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,255}"),
    _marked("github token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,255}"),
    _marked(
        "gitlab token",
        "glpat- gldt- glrt- glft- glsoat- glcbt- glptt- glffct- glimt- glagent- gloas- GR1348941",
        r"(?:gl(?:pat|dt|rt|ft|soat|cbt|ptt|ffct|imt|agent|oas)-[\w-]{18,300}(?:\.[0-9a-z]{9})?|GR1348941[\w-]{18,40})",
    ),
    _kind("slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?P<secret>(?:services|workflows|triggers)/[\w/+]{20,120})"),
    _kind("discord webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/(?P<secret>\d{8,24}/[\w-]{20,100})"),
    _marked("discord token", ".", r"[MNO](?:(?<![\w-][MNO])|(?<=\\[nrt][MNO]))[\w-]{22,27}\.[\w-]{6}\.[\w-]{27,45}(?![\w-])"),
    _marked("stripe key", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_", r"(?:[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,250}|whsec_[A-Za-z0-9+/=]{20,120})"),
    _marked("npm token", "npm_", r"npm_[A-Za-z0-9]{30,60}"),
    _marked("pypi token", "pypi-", r"pypi-[A-Za-z0-9_-]{50,400}"),
    _kind("terraform token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w=%-]{50,200}"),
    _marked("docker token", "dckr_pat_ dckr_oat_", r"dckr_[po]at_[\w-]{20,100}"),
    _marked("telegram token", ":A", r"\d(?:(?<![A-Za-z0-9]\d)|(?<=\\[nrt]\d))\d{4,15}:A[\w-]{34,36}(?![\w-])"),
    _kind("azure secret", "Q~", r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    _marked("facebook token", "| %", r"\d(?:(?<![A-Za-z0-9]\d)|(?<=\\[nrt]\d))\d{14,15}(?:\||%7C|%)[\w-]{27,40}(?![\w-])"),
    _kind("mailchimp token", "-us", r"[0-9a-f]{32}-us\d{1,2}(?![0-9A-Za-z])"),
    _kind("maxmind token", "_mmk", r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    _kind("gitlab token", "_gitlab_session=", r"_gitlab_session=(?P<secret>[0-9a-z]{32})"),
    _marked("microsoft webhook", ".webhook.office.com/", r"\.webhook\.office\.com/(?P<secret>webhookb2/[\w@/-]{60,250})"),
    _kind("firebase key", ":APA91b", r"[\w-]{11,40}:APA91b[\w-]{100,180}"),
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
    _marked("password in a url", "://", r"://(?P<secret>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8})@"),
    _marked("password in a url", "://", r"://[^\s:/@\"'<>]{0,100}:(?![${<*%]|pass(?:w(?:or)?d)?[\])]?@)(?P<secret>[^\s/@\"'<>]{1,200})@"),
    _marked("password in a url", "://", r"://(?=[A-Za-z_-]{0,60}[0-9])(?P<secret>[A-Za-z0-9_-]{20,200})(?::[^\s/@\"'<>]{0,40})?@"),
    _kind("signed url", "sig= signature= token=", r"(?:sig|signature|x-(?:amz|goog)-signature|x-amz-security-token)=(?P<secret>(?=[A-Za-z_%+/=-]{0,60}[0-9])[\w%+/=-]{20,2000})", re.IGNORECASE),
    _kind("password of a login", "login", r"login\s{1,8}\S{1,100}\s{1,8}password\s{1,8}(?P<secret>\S{4,200})"),
    _kind("command line password", "-u --user", r"""(?:curl|wget|http)\b[^\n]{0,300}?\s(?:-u|--user)[ =]{0,3}\\?["']?[^\s:"']{1,64}:(?![$<*{])(?P<secret>[^\s"'\\]{4,200})"""),
    _kind("command line password", "mysql mariadb", r"""(?:mysql|mariadb)[a-z_-]{0,12}\s[^\n|;&]{0,200}?(?<=\s)\\?["']?-p\\?["']?(?![$<*{])(?P<secret>[^\s"'\\]{3,200})"""),
    _kind("command line password", "sshpass redis-cli htpasswd", r"""(?:sshpass\s{1,4}-p|redis-cli\s[^\n|;&]{0,100}?(?<=\s)-a|htpasswd\s{1,4}-[a-zA-Z]{0,4}b[a-zA-Z]{0,4}\s{1,4}\S{1,100}\s{1,4}\S{1,64})\s{0,4}\\?["']?(?![$<*{])(?P<secret>[^\s"'\\]{3,200})"""),
    _kind("command line password", "login", r"""(?:docker|podman|az|helm|oc|vault|npm|cf|bw)\s[^\n|;&]{0,60}?login\s[^\n|;&]{0,200}?(?<=\s)(?:-p|--password)[ =]{1,4}\\?["']?(?![$<*{-])(?P<secret>[^\s"'\\]{4,200})"""),
    _kind("command line password", "pass:", r"""-pass(?:in|out)?\s{1,4}\\?["']?pass:(?![$<*{])(?P<secret>[^\s"'\\]{3,200})"""),
    _kind("command line password", "sudo", r"""echo\s{1,4}\\?["']?(?![$<*{])(?P<secret>[^\s"'|\\]{4,100})\\?["']?\s{0,4}\|\s{0,4}sudo\s{1,4}-\w{0,3}S"""),
    _kind("password in sql", "identified password", r"""(?:identified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?by|(?:user|role)\s[^\n;]{1,120}?password)\s{1,4}(?:\\?["']){1,5}(?P<secret>[^"'\n\\]{4,128})\\?["']""", re.IGNORECASE),
    _marked("password of a login", ":", r""":(?:\d{4,5}|\*):[A-Za-z*][\w*-]{0,62}:[A-Za-z][\w.-]{0,62}:(?P<secret>[^\s:"'&\\*{][^\s:"'&\\]{3,200})"""),
    _kind("authorization header", "-h --header", r"""(?:-H|--header)[ =\t]{0,5}\\?["']{1,2}[\w-]{0,40}(?:key|token|secret|auth|authorization)\\?:(?:\s|\\t){0,5}(?:(?:bearer|basic|token|api-token|apikey)(?:\s|\\t){1,4})?(?P<secret>(?=[A-Za-z+/=_.~:@-]{0,60}[0-9])[\w=~@.+/:-]{8,4000})""", re.IGNORECASE),
)  # fmt: skip
"""In the order in which they are believed: where two overlap, the earlier gives the name."""
