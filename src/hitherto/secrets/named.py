"""Values under a name that says what they are: `api_key = "…"`, `DB_PASSWORD=…`, a default of Terraform. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hitherto.secrets.rules import is_password, is_random, is_secret_value

# Names of secrets, and what must stand before those that alone would mean too much.
_NAMES = ("passw", "passphrase", "pass", "pwd", "secret", "token", "credential", "auth", "key", "client", "access", "api", "login")  # fmt: skip
_LONGER = {
    "passw": re.compile(r"(?:or)?d|rd", re.IGNORECASE),
    "pass": re.compile(r"(?![A-Za-z])"),
    "client": re.compile(r"[_-]?id(?![A-Za-z])", re.IGNORECASE),
    "access": re.compile(r"[_-]?id(?![A-Za-z])", re.IGNORECASE),
    "api": re.compile(r"[_-]?id(?![A-Za-z])", re.IGNORECASE),
    "login": re.compile(r"(?![A-Za-z])"),
}
"""How names of which only the beginning is looked for must go on."""
_BEFORE = {
    "key": re.compile(
        r"(?:api|access|private|secret|signing|encryption|auth|client|account|master|storage|service|deploy|license|app|pub"
        r"|session|shared|host|admin|jwt|hmac|csrf|salt|cipher|crypto|webhook)[_.\- ]?$",
        re.IGNORECASE,
    ),
    "pass": re.compile(r"(?:[_.-]|(?<![A-Za-z]))$"),
    "login": re.compile(r"sonar[_.-]$", re.IGNORECASE),
}
_PASSWORDS = frozenset({"passw", "passphrase", "pass", "pwd"})
_OPTION = re.compile(r"--(?:[a-z]{1,12}-){0,3}$", re.IGNORECASE)
_DEFINED = re.compile(r"define\(\s{0,4}(?:\\?[\"']){1,5}\w{0,40}$")
_CHUNK = r"""(?:(?!&\w{1,40}=)[^\s"'`,;<>(){}\[\]\\]){4,512}"""
_QUOTED = r"""(?P<quote>\\{0,3}["'`])(?P<secret>(?:(?!(?P=quote))[^\n]){4,512})(?=(?P=quote))"""
_PLAIN = rf"""(?P<quote>\\{{0,3}}["'`])?(?P<secret>{_CHUNK})"""
_GIVES = (
    r"(?P<behind>[\w.-]{0,40}?)"
    r"""(?:(?P<sign>(?:\\{0,3}["'\]]){0,2}\s{0,16}(?::=|=>|\?=|[:=])\s{0,16})|["']?\s(?:is|was)\s{1,2}|>"""
    r"""|\\{0,3}["']\s{0,4}\{[^{}]{0,300}?\bdefault\s{0,8}=\s{0,4}"""  # a variable of Terraform
    r"""|\\{0,3}["']?\s{0,40}\bvalue\s{0,2}[:=]\s{0,4})"""  # an entry of NuGet, a variable of Kubernetes
)
_GIVEN_QUOTED = re.compile(_GIVES + _QUOTED)
_GIVEN = re.compile(_GIVES + _PLAIN)
_GIVEN_TO_OPTION = re.compile(r"(?P<behind>)(?P<sign>)\s{1,3}(?!-)" + _PLAIN)
_GIVEN_TO_DEFINE = re.compile(
    r"""(?P<behind>)(?P<sign>)(?:\\?["']){1,5},\s{0,4}(?:\\?["']){0,4}?""" + _QUOTED
)
_VARIABLE = re.compile(
    r"""_(?:KEY|PASS|PAT|DSN|CREDS)["']?\s{0,4}[:=]\s{0,4}["']?(?P<secret>[^\s"'`,;<>(){}\[\]\\]{16,512})"""
)
_INDENT = re.compile(r"(?:\A|\n)(?:[ \t]{0,40}(?:- |export |set |ENV |ARG )?)\Z")


def named(text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Where such values stand in a text, which is also given in small letters."""
    for name in _NAMES:
        at = lowered.find(name)
        while at >= 0:
            end = at + len(name)
            if (match := _given(text, at, name)) is not None:
                yield match.span("secret")
                end = match.end()
            at = lowered.find(name, end)
    for match in _VARIABLE.finditer(text):
        if is_random(match["secret"]):
            yield match.span("secret")


def _given(text: str, at: int, name: str) -> re.Match[str] | None:
    """The secret that is given for the name that stands here."""
    before = text[max(at - 40, 0) : at]
    after = at + len(name)
    if name in _BEFORE and not _BEFORE[name].search(before):
        return None
    if name in _LONGER:
        longer = _LONGER[name].match(text, after)
        if longer is None:
            return None
        after = longer.end()
    for pattern in (_GIVEN_QUOTED, _GIVEN):
        match = pattern.match(text, after)
        if match is not None and _is_secret(name, match, before):
            return match
    for asked, pattern in ((_OPTION, _GIVEN_TO_OPTION), (_DEFINED, _GIVEN_TO_DEFINE)):
        if asked.search(before) and (match := pattern.match(text, after)) and _is_secret(name, match, before):
            return match
    return None


def _is_secret(name: str, match: re.Match[str], before: str) -> bool:
    ended = match.string[match.end() : match.end() + 4].lstrip("\\")[:1]
    if ended == "(" and not match["quote"]:
        return False
    quoted = bool(match["quote"]) and ended in ('"', "'", "`")
    if name == "pass" and match["behind"].strip("0123456789"):
        return False
    if name in _PASSWORDS:
        alone = not quoted and _stands_alone(match, before, ended)
        return is_password(match["behind"], match["secret"], quoted=quoted, alone=alone)
    return is_secret_value(name, match["behind"], match["secret"])


def _stands_alone(match: re.Match[str], before: str, ended: str) -> bool:
    """Whether this is written where code cannot stand: a line of settings, a variable of a shell, a part of an address."""
    if match["sign"] is None and match.string[match.start("secret") - 1] == ">":
        return ended == "<"
    if match["sign"] == "":
        return True
    sign = match["sign"] or ""
    start = len(before.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"))
    whole = before[start:] + match.string[match.start() - 1 : match.start("behind")]
    if sign == "=":
        in_address = before[:start][-1:] in ("?", "&", ";") and ended in (
            "&",
            "",
            "#",
            ";",
            " ",
            "\n",
            '"',
            "'",
        )
        of_shell = whole.isupper() and ended in ("", " ", "\n", ";", '"', "'", "\\")
        if in_address or of_shell:
            return True
    line_ends = ended in ("", "\n", "\r")
    return line_ends and "\n" not in sign and bool(sign) and bool(_INDENT.search(before[:start]))
