"""Bytes of a store change on the disk: the server tells what it cannot trust, never something else, and serves the rest.

The rows of other owners, forks, facts, tokens and raw copies are tried by `misplaced_rows`.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hitherto
from hitherto.model import LOCAL, Draft, Text
from tests.gateway.servers import Server
from torture.clients.acknowledged import UNFORESEEN, code_of
from torture.storage.misplaced_rows import try_places
from torture.trial.commands import command, served
from torture.trial.program import Environment, store_in
from torture.trial.row import Outcome, Setting

WHOLE = "hitherto.db"
SESSIONS, MESSAGES = 40, 6
WORDS = 80
DAMAGED = ("store_damaged", "store_error")
Said = dict[str, list[str]]
"""By session, the texts of its messages."""


REFUSED_SHARE = 0.2
"""At most this share of stores is refused, or their lists. In the others a byte costs one session, as a mean, at most."""


class Seen(Counter[str]):
    """What was found, over all stores. `whole`, `told` and `lacking` count sessions by their histories, `unlisted` those
    that are not in the list, `silent` those lacking or unlisted of which nobody tells, `altered` what nobody has written;
    `refused`, `unlistable` and `fell` count stores."""

    def is_good(self, stores: int, flips: int) -> bool:
        """Whether nothing wrong was ever given out, no server fell, and the rest was served."""
        wrong = ("altered", "silent", "fell", "odd")
        served = stores - self["refused"]
        return (
            not any(self[each] for each in wrong)
            and self["refused"] + self["unlistable"] <= REFUSED_SHARE * stores
            and self["whole"] >= served * (SESSIONS - flips)
        )


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Stores with some bytes changed, each served by a server of its own."""
    said = _said(setting)
    data, seen = (setting.folder / WHOLE).read_bytes(), Seen()
    dice, flips = setting.dice("flips"), setting.of(short=6, full=4)
    # What is broken shows soon.
    stores = setting.of(short=1, full=25 if environment else 100)
    for number in range(stores):
        home = setting.folder / f"home-{number}"
        home.mkdir()
        flipped = _flipped(data, _places(setting, data, said, dice, flips), dice)
        (home / WHOLE).write_bytes(flipped)
        seen.update(_served(setting, home, said, environment))
    figure = (
        f"{stores * flips:,} bytes changed in {stores} stores: {seen['refused']} refused as damaged, and the list of"
        f" {seen['unlistable']}; of {(stores - seen['refused']) * len(said):,} sessions of the others {seen['whole']:,} served whole, {seen['told']:,}"
        f" told as damaged, {seen['lacking']} not found or lacking messages, and {seen['unlisted']} not listed: {seen['silent']}"
        f" of these not told by `doctor`; {seen['altered']} given out altered; {seen['odd']} internal errors,"
        f" {seen['fell']} servers fell"
    )
    bits, swaps = (
        setting.of(short=8, full=50 if environment else 1_000),
        setting.of(short=8, full=48 if environment else 400),
    )
    found = try_places(setting, environment, bits, swaps)
    return Outcome(
        met=seen.is_good(stores, flips) and found.is_good(),
        figure=f"{figure}. {found.told()}",
        counts={
            "faults": stores * flips + bits + swaps,
            "lost": seen["silent"] + seen["altered"] + found["silent"] + found["altered"],
        },
    )


def _said(setting: Setting) -> Said:
    """A store with sessions, and what was said in them."""
    dice = setting.dice("texts")
    said = {
        f"session-{number}": ["".join(dice.choices("abcdefghij ", k=WORDS)) for _ in range(MESSAGES)]
        for number in range(SESSIONS)
    }

    async def write() -> None:
        async with hitherto.open(store_in(setting.folder)) as sessions:
            for name, texts in said.items():
                await sessions.create(LOCAL, session_id=name, title=_title(name), tags=["a"], cwd="/srv/a")
                drafts = [Draft(role="user", parts=(Text(text=text),)) for text in texts]
                await sessions.append(LOCAL, name, drafts)

    asyncio.run(write())
    return said


def _title(name: str) -> str:
    return f"About {name}"


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
            seen, lacking = _asked(server, said)
    except AssertionError as not_started:
        refused = "[store_damaged]" in str(not_started)
        setting.say("" if refused else str(not_started))
        return Seen({"refused" if refused else "fell": 1})
    if lacking:
        # What is not there, or less than there was, is told by the check of the store.
        told = command(home, environment, "doctor", "--no-repair", *store).returncode != 0
        seen["silent"] += 0 if told else len(lacking)
        setting.say(f"{home.name}: lacking {sorted(lacking)}, {'told' if told else 'NOT TOLD'} by `doctor`")
    return seen


def _asked(server: Server, said: Said) -> tuple[Seen, set[str]]:
    """Ask for every session and for the list; also the sessions that lack something, or are lacking, without an error."""
    seen = Seen()
    kinds = {
        name: _judged(server.rpc("session.history", {"session_key": name, "limit": 100}), texts)
        for name, texts in said.items()
    }
    seen.update(kinds.values())
    reply = server.rpc("session.list", {"limit": 100})
    titles = {name: _title(name) for name in said}
    unlisted = set[str]()
    if "result" in reply:
        listed = {each["session_id"]: each["title"] for each in reply["result"]["sessions"]}
        unlisted = titles.keys() - listed.keys()
        seen.update(unlisted=len(unlisted), altered=len(listed.items() - titles.items()))
    else:
        seen["odd" if _is_odd(reply) else "unlistable"] += 1
    seen["fell"] += server.request("GET", "/health").status != 200 or server.process.poll() is not None
    return seen, unlisted | {name for name, kind in kinds.items() if kind == "lacking"}


def _judged(reply: Any, texts: list[str]) -> str:
    if "result" in reply:
        found = _texts(reply["result"])
        lacks = "lacking" if set(found) < set(texts) else "altered"
        return "whole" if found == texts else lacks
    if _is_odd(reply):
        return "odd"
    return "told" if code_of(reply) in DAMAGED else "lacking"


def _is_odd(reply: Any) -> bool:
    """Whether it is an error that nobody has foreseen."""
    return code_of(reply) in UNFORESEEN


def _texts(result: Any) -> list[str]:
    return [message["content"] for message in result["messages"]]
