"""Bytes of a store change on the disk: the server tells what it cannot trust, never something else, and serves the rest."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import recollect
from recollect.model import LOCAL, Draft, Text
from tests.gateway.servers import Server
from torture.ledger import UNFORESEEN, code_of
from torture.programs import command, served
from torture.row import Outcome, Setting
from torture.trying import Environment, store_in

WHOLE = "recollect.db"
MESSAGES = 6
WORDS = 80
DAMAGED = ("store_damaged", "store_error")
Said = dict[str, list[str]]
"""By session, the texts of its messages."""


class Seen(Counter[str]):
    """What was found, over all stores: `whole`, `told`, `noticed` and `silent` count sessions; `refused`, `fell` stores."""

    @property
    def is_good(self) -> bool:
        """Whether nothing wrong was ever given out, and no server fell."""
        return not (self["silent"] or self["fell"] or self["odd"])


def tried(setting: Setting, environment: Environment) -> Outcome:
    """Stores with some bytes changed, each served by a server of its own."""
    said = _said(setting)
    data, seen = (setting.folder / WHOLE).read_bytes(), Seen()
    dice, flips = setting.dice("flips"), setting.of(short=6, full=4)
    # What is broken shows soon.
    stores = setting.of(short=1, full=25 if environment else 250)
    for number in range(stores):
        home = setting.folder / f"home-{number}"
        home.mkdir()
        flipped = _flipped(data, _places(setting, data, said, dice, flips), dice)
        (home / WHOLE).write_bytes(flipped)
        seen.update(_served(setting, home, said, environment))
    total = stores * len(said)
    answered = total - seen["refused"] * len(said)
    figure = (
        f"{stores * flips:,} bytes changed in {stores} stores: {seen['refused']} refused as damaged; of {answered:,} sessions "
        f"{seen['whole']:,} served whole, {seen['told']:,} told as damaged, {seen['noticed']} not found or lacking and "
        f"noticed by `doctor`, {seen['silent']} silently wrong; {seen['odd']} internal errors, {seen['fell']} servers fell"
    )
    return Outcome(met=seen.is_good, figure=figure, counts={"faults": stores * flips, "lost": seen["silent"]})


def _said(setting: Setting) -> Said:
    """A store with sessions, and what was said in them."""
    dice = setting.dice("texts")
    said = {
        f"session-{number}": ["".join(dice.choices("abcdefghij ", k=WORDS)) for _ in range(MESSAGES)]
        for number in range(setting.of(short=10, full=40))
    }

    async def write() -> None:
        async with recollect.open(store_in(setting.folder)) as sessions:
            for name, texts in said.items():
                await sessions.create(LOCAL, session_id=name, title=f"About {name}", tags=["a"], cwd="/srv/a")
                drafts = [Draft(role="user", parts=(Text(text=text),)) for text in texts]
                await sessions.append(LOCAL, name, drafts)

    asyncio.run(write())
    return said


def _places(setting: Setting, data: bytes, said: Said, dice: random.Random, count: int) -> list[int]:
    """Where bytes change: anywhere; in the short form within messages, so that each of them matters."""
    if not setting.short:
        return [dice.randrange(len(data)) for _ in range(count)]
    texts = [text.encode() for texts in said.values() for text in texts]
    return [data.index(text) + dice.randrange(WORDS) for text in dice.sample(texts, count)]


def _flipped(data: bytes, places: Sequence[int], dice: random.Random) -> bytes:
    changed = bytearray(data)
    for place in places:
        changed[place] ^= dice.randrange(1, 256)
    return bytes(changed)


def _served(setting: Setting, home: Path, said: Said, environment: Environment) -> Seen:
    store = ("--store", store_in(home))
    try:
        with served(home, environment, *store) as server:
            seen, unlike = _asked(server, said)
    except AssertionError as not_started:
        refused = "[store_damaged]" in str(not_started)
        setting.say("" if refused else str(not_started))
        return Seen({"refused" if refused else "fell": 1})
    if unlike:
        # What is not there, or less than there was, is told by the check of the store.
        noticed = command(home, environment, "doctor", "--no-repair", *store).returncode != 0
        seen["noticed" if noticed else "silent"] += len(unlike)
        setting.say(f"{home.name}: {unlike} {'noticed' if noticed else 'SILENT'}")
    return seen


def _asked(server: Server, said: Said) -> tuple[Seen, list[str]]:
    """Ask for every session and for the list; also the sessions that are not what they were, and nothing said so."""
    seen, unlike = Seen(), list[str]()
    for name, texts in said.items():
        kind = _judged(server.rpc("session.history", {"session_key": name, "limit": 100}), texts)
        seen[kind] += 1
        unlike += [name] if kind == "unlike" else []
    seen["odd"] += _is_odd(server.rpc("session.list", {"limit": 100}))
    seen["fell"] += server.request("GET", "/health").status != 200 or server.process.poll() is not None
    return seen, unlike


def _judged(reply: Any, texts: list[str]) -> str:
    if "result" in reply:
        return "whole" if _texts(reply["result"]) == texts else "unlike"
    if _is_odd(reply):
        return "odd"
    return "told" if code_of(reply) in DAMAGED else "unlike"


def _is_odd(reply: Any) -> bool:
    """Whether it is an error that nobody has foreseen."""
    return code_of(reply) in UNFORESEEN


def _texts(result: Any) -> list[str]:
    return [message["content"] for message in result["messages"]]
