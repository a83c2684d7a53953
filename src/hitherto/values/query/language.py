"""The language of queries: words, "phrases", beginnings*, -words, and fields such as `project:engine`. One parser for every
door. Pure.

Whether a text with a colon is a field or plain text, this module alone decides; `docs/search.md` tells it to people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from hitherto.errors import InvalidQuery
from hitherto.limits import CWD_CHARS, is_storable
from hitherto.model import ROLES, Condition, Filter
from hitherto.values.filters import HERE, STATES, normal_cwd
from hitherto.values.query.moments import Period, period_of, said_in
from hitherto.values.words import QUERY_CHARS, QUERY_TERMS, Term, bounded, plain_quotes, term_of

HAS = ("attachment", "audio", "code", "edit", "error", "image", "plan", "thought", "tool")
"""What `has:` takes."""
Kind = Literal["session", "message", "file", "time"]
FOREVER = 1 << 62


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: all of it must hold.

    `terms` and `without` are words that a message has and has not. `session`, `message` and `files` are what the fields say
    about the session, the message, and files that the session changed or named. `after` (included) and `before` (not
    included) are ms since 1970; `when` is the time that words such as `last week` name.
    """

    terms: tuple[Term, ...] = ()
    without: tuple[Term, ...] = ()
    session: tuple[Condition, ...] = ()
    message: tuple[Condition, ...] = ()
    files: tuple[Condition, ...] = ()
    after: int | None = None
    before: int | None = None
    when: Period | None = None
    plain: str = field(default="", compare=False)
    """What of the text is words, as it was written."""

    @property
    def role(self) -> str | None:
        """The one role that messages must have, if there is one."""
        roles = [each for each in self.message if each.field == "role" and not each.out]
        return roles[0].values[0] if len(roles) == 1 and len(roles[0].values) == 1 else None

    @property
    def is_about_messages(self) -> bool:
        """Whether it asks for more than what is known of a session without its messages."""
        return bool(self.terms or self.without or self.message or self.files or self.when) or (
            self.before is not None
        )

    def during(self, *, named: bool) -> Period | None:
        """The time that messages must be of, with `named` also by words such as `last week`; None for all time."""
        when = [self.when] if named and self.when is not None else []
        after = [each for each in (self.after, *(period.after for period in when)) if each is not None]
        before = [each for each in (self.before, *(period.before for period in when)) if each is not None]
        if not after and not before:
            return None
        return Period(max(after, default=-FOREVER), min(before, default=FOREVER))


class Field(NamedTuple):
    """A field: what it is about, what a value must be (None: it cannot be one), and how to say that.

    Of most, several values mean any of them, however they are written. Where one session or message can have several at once,
    each that is written by itself must be there (`each`).
    """

    kind: Kind
    read: Callable[[str], str | None]
    takes: str
    each: bool = False


def parse_query(text: str, now: int | None = None) -> Query:
    """The query that a text means; `now` says what `yesterday` is, which is else a word like any other. What is beyond
    `QUERY_CHARS`, `QUERY_TERMS`, `QUERY_PHRASES_TOKENS`, `QUERY_BEGINNINGS` or `QUERY_LETTERS` is ignored, and what is said twice.

    Raises `InvalidQuery` for a field that does not exist, and for a value that a field does not take.
    """
    rest, when = plain_quotes(text[:QUERY_CHARS]), None
    if now is not None:
        when, rest = said_in(rest, now)
    found = _Found(now or 0)
    for item in _ITEM.finditer(rest):
        found.take(item)
    return Query(
        terms=bounded(found.terms),
        without=bounded(found.without),
        session=found.conditions("session"),
        message=found.conditions("message"),
        files=found.conditions("file"),
        after=max(found.after, default=None),
        before=min(found.before, default=None),
        when=when,
        plain=" ".join(found.plain),
    )


def filtered(given: Filter, query: Query) -> Filter:
    """The filter together with what a query says of sessions: as its own fields, which stores have indexes for, where these
    are free, else as conditions."""
    fields: dict[str, Any] = {}
    where: list[Condition] = []
    tags, titles = list(given.tags), [given.text] if given.text else []
    for each in query.session:
        value = each.values[0]
        name = value if each.field == "is" or (each.field, value) == ("source", HERE) else each.field
        meant = _MEANT.get((name, each.out))
        if len(each.values) > 1 or (value.endswith("*") and each.field != "title"):
            where.append(each)
        elif each.field == "tag" and not each.out:
            tags.append(value)
        elif each.field == "title" and not each.out:
            titles.append(value)
        elif meant and meant.field not in fields and getattr(given, meant.field) in (None, *meant.free):
            fields[meant.field] = value if meant.value is None else meant.value
        else:
            where.append(each)
    return replace(
        given,
        tags=tuple(sorted(set(tags))),
        text=" ".join(titles) or None,
        where=(*given.where, *where),
        **fields,
    )


class _Meant(NamedTuple):
    """The field of a filter that a condition means; with this value, if it is not its own, in place of nothing or of `free`."""

    field: str
    value: Any = None
    free: tuple[str, ...] = ()


_MEANT: dict[tuple[str, bool], _Meant] = {
    ("channel", False): _Meant("channel"),
    ("cwd", False): _Meant("cwd"),
    ("project", False): _Meant("project"),
    ("source", False): _Meant("source"),
    ("archived", False): _Meant("archived", "only", ("include", "exclude")),
    ("archived", True): _Meant("archived", "exclude", ("include",)),
    ("failed", False): _Meant("status", "failed"),
    (HERE, False): _Meant("native", True),
    (HERE, True): _Meant("native", False),
    ("pinned", False): _Meant("pinned", True),
    ("pinned", True): _Meant("pinned", False),
    ("running", False): _Meant("status", "running"),
    ("waiting", False): _Meant("status", "waiting"),
}


def _text(text: str) -> str | None:
    return text or None


def _path(text: str) -> str | None:
    if not text.startswith("/"):
        return None
    # No session has a folder that is too long: the search finds nothing, which is the truth.
    return normal_cwd(text) if len(text) <= CWD_CHARS else text


def _words(text: str) -> str | None:
    return text if term_of(text) is not None else None


def _one_of(names: Iterable[str]) -> Callable[[str], str | None]:
    known = frozenset(names)
    return lambda text: text.lower() if text.lower() in known else None


_WHEN = "a date such as 2026-11-15 or 2026-11, yesterday, last-week, march, or 7d"
FIELDS: dict[str, Field] = {
    "after": Field("time", _text, _WHEN),
    "agent": Field("session", _text, "the name of an agent"),
    "before": Field("time", _text, _WHEN),
    "branch": Field("session", _text, "the name of a git branch"),
    "channel": Field("session", _text, "the name of a channel"),
    "cwd": Field("session", _path, "the full path of a folder"),
    "file": Field("file", _words, "the name of a file, or the end of its path", each=True),
    "from": Field("message", _text, "the id or a name of who wrote a message"),
    "has": Field("message", _one_of(HAS), f"one of {', '.join(HAS)}", each=True),
    "is": Field("session", _one_of(STATES), f"one of {', '.join(STATES)}", each=True),
    "model": Field("message", _text, "a part of a model's name"),
    "on": Field("time", _text, _WHEN),
    "project": Field("session", _text, "the name of a project, or its end"),
    "role": Field("message", _one_of(ROLES), f"one of {', '.join(ROLES)}"),
    "source": Field("session", _text, "the name of a source"),
    "tag": Field("session", _text, "a tag", each=True),
    "title": Field("session", _words, "words of a title", each=True),
    "tool": Field("message", _text, "the name of a tool"),
}
"""All fields, by name."""

_ITEM = re.compile(r'(-?)(?:([A-Za-z]+):)?(?:"([^"]*)"?(\*?)|([^\s"]+))')


@dataclass(slots=True)
class _Found:
    """What was found in a text so far."""

    now: int
    terms: list[Term] = field(default_factory=list)
    without: list[Term] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)
    narrowed: list[Condition] = field(default_factory=list)
    after: list[int] = field(default_factory=list)
    before: list[int] = field(default_factory=list)

    def take(self, item: re.Match[str]) -> None:
        """Take one item: a field, or else a word or phrase."""
        sign, name, quoted, star, bare = item.groups()
        out = bool(sign) and (item.start() == 0 or item.string[item.start() - 1].isspace())
        values = [bare or ""] if quoted is None else [quoted]
        if name and bare and _takes_several(name.lower()):
            values = [value for value in bare.split(",") if value]
        if not name or not all(map(_is_value, values)) or not any(values):
            self._take_words(item, out=out)
        elif name.lower() in FIELDS:
            if name.lower() == "title" and quoted is not None:
                values = [f'"{quoted}"{star}']
            self._take_field(name.lower(), values, out=out)
        elif _is_meant_as_field(name, values[0], is_quoted=quoted is not None):
            known = " ".join(f"{each}:" for each in FIELDS)
            raise InvalidQuery(
                f"a search has no field {name}: it has {known}; to look for the text itself, put it in quotes"
            )
        else:
            self._take_words(item, out=out)

    def _take_words(self, item: re.Match[str], *, out: bool) -> None:
        _, name, quoted, _, bare = item.groups()
        # -5, --flag and -m are what they are: only a word can be left out.
        is_out = out and not name and (quoted is not None or (len(bare) > 1 and bare[0].isalpha()))
        term = term_of(item[0])
        if term is not None and is_out:
            self.without.append(term)
        elif term is not None:
            self.terms.append(term)
            self.plain.append(item[0])

    def _take_field(self, name: str, values: list[str], *, out: bool) -> None:
        known = FIELDS[name]
        read = [known.read(value) for value in values]
        if known.kind == "time":
            self._take_time(name, values[0], out=out)
        elif None in read:
            raise InvalidQuery(f"{name}: takes {known.takes}, not {', '.join(values)!r:.80}")
        else:
            self.narrowed.append(
                Condition(field=name, values=tuple(value for value in read if value is not None), out=out)
            )

    def _take_time(self, name: str, value: str, *, out: bool) -> None:
        period = period_of(value, self.now)
        if out:
            raise InvalidQuery(f"{name}: cannot be left out; say what you want with after: and before:")
        if period is None:
            raise InvalidQuery(f"{name}: takes {_WHEN}, not {value!r:.80}")
        if name in ("after", "on"):
            self.after.append(period.after)
        if name in ("before", "on"):
            self.before.append(period.before if name == "on" else period.after)

    def conditions(self, kind: Kind) -> tuple[Condition, ...]:
        """What was found about this, with the values together of which any will do."""
        found: dict[object, Condition] = {}
        for number, each in enumerate(self.narrowed):
            if FIELDS[each.field].kind != kind:
                continue
            key = number if FIELDS[each.field].each else (each.field, each.out)
            others = found[key].values if key in found else ()
            values = tuple(dict.fromkeys((*others, *each.values)))[:QUERY_TERMS]
            found[key] = Condition(field=each.field, values=values, out=each.out)
        return tuple(dict.fromkeys(found.values()))[:QUERY_TERMS]


def _takes_several(name: str) -> bool:
    return name in FIELDS and FIELDS[name].kind != "time"


def _is_value(text: str) -> bool:
    """NUL and lone surrogates occur in no store's column."""
    return text.isprintable() and is_storable(text)


def _is_meant_as_field(name: str, value: str, *, is_quoted: bool) -> bool:
    """Whether `name:value` is written as a field is. These are plain text: `https://x`, `a::b`, `C:\\x`, `TypeError:x`,
    `localhost:8080`."""
    begins = value[0].isalnum() or value[0] in "~._*" or (value[0] == "/" and value[1:2] != "/")
    return name.islower() and len(name) > 1 and (is_quoted or (begins and not value.isdigit()))
