"""Secrets of every shape are found in every surrounding, and ordinary code raises hardly an alarm."""

from __future__ import annotations

import random
import re
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from hitherto.secrets import ENCODED, NAMED, RANDOM, find, redact
from hitherto.secrets.kinds import KINDS
from hitherto.secrets.services import SERVICES
from tests.secrets.shapes import SHAPES
from tests.secrets.surroundings import SURROUNDINGS, surrounded
from tests.support.paths import ROOT

LINES, MOST = 10_000, 1
EVERY = 12
"""Of the standard library every twelfth module is read."""


@pytest.mark.parametrize("where", SURROUNDINGS)
def test_a_secret_of_any_shape_is_found_in_any_surrounding(where: str) -> None:
    dice = random.Random(11)
    samples = [(name, draw(dice)) for name, draw in SHAPES.items() for _ in range(2)]
    texts = {(name, surrounded(sample)[where]): sample for name, sample in samples}
    shown = [key for key, sample in texts.items() if sample.shown(redact(key[1], Counter()))]
    assert not shown


def test_each_kind_of_a_bare_token_is_found_in_the_place_of_another_word() -> None:
    dice = random.Random(12)
    for name, draw in SHAPES.items():
        sample = draw(dice)
        if name.endswith(", bare"):
            for text in (f"use {sample.text}, please", f"({sample.text})", f"a\\n{sample.text}\\tb"):
                assert not sample.shown(redact(text, Counter())), (name, text)


def test_ordinary_code_raises_at_most_one_alarm_in_ten_thousand_lines() -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    modules = sorted(
        path for path in library.rglob("*.py") if not {"site-packages", "test", "tests"} & {*path.parts}
    )
    lines, alarms = 0, list[str]()
    for path in modules[::EVERY]:
        text = path.read_text(encoding="utf-8", errors="replace")
        lines += text.count("\n")
        alarms += [f"{path.name}: {found.kind}: {text[found.start : found.end]}" for found in find(text)]
    assert lines > LINES
    assert len(alarms) * LINES <= MOST * lines, alarms


@pytest.mark.parametrize(
    "text",
    [
        "    password: str",
        "password: string;",
        "  password: Optional",
        "password = get_password()",
        "PASSWORD=$1",
        "PWD=/home/me",
        "db.connect(password=db_password)",
        '"password": "Enter your password"',
        'help="the password of the user"',
        "ENV DB_PASSWORD=${DB_PASSWORD}",
        "bypass = compass_heading",
        "see file.c:1234:56:error:message",
        "https://user:password@example.com/",
        "token = AsyncX509WorkloadIdentityAuth(client)",
        "peer_public_key: X25519PublicKey",
        "pass_context = jinja2.pass_context",
    ],
)
def test_what_code_and_documents_say_of_passwords_is_left_alone(text: str) -> None:
    assert redact(text, Counter()) == text


def test_the_documents_name_every_kind() -> None:
    section = (
        (ROOT / "docs" / "exporting.md")
        .read_text(encoding="utf-8")
        .partition("## Secrets")[2]
        .partition("\n## ")[0]
    )
    named = set(re.findall(r"`([^`]+)`", section))
    assert {kind.name for kind in (*KINDS, *SERVICES)} | {NAMED, ENCODED, RANDOM} <= named
