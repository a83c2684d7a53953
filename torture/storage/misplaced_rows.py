"""Single bits flip anywhere in a store, and right rows change places: nothing of it is ever given out as genuine.

The store has many owners, each with sessions, closed and open spans, a fork, a checkpoint, a lease, facts, a token and raw
copies. All of that is read, of every damaged copy, by the program under trial.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import apsw

import hitherto
from hitherto.errors import HithertoError
from hitherto.model import Draft, Fact, Principal, Text, encode
from hitherto.service import Sessions
from torture.trial.program import Environment, apart, store_in
from torture.trial.row import Outcome, Setting

FILES = ("hitherto.db", "hitherto.db-search")
OWNERS = 8
MESSAGES = 6
AT_ONCE = 50
DAMAGED = "[damaged]"
ODD = "[odd]"
KINDS = {DAMAGED: "told", ODD: "odd"}
Read = dict[str, Any]
"""By what it is, what was read; `DAMAGED` or `ODD` and why if it could not be."""

# What leads to a row or says whose it is stays, everything else changes places, its checksums too: a right row in a wrong place.
SWAPPED = {
    "session": ("num", "num id owner key order_at hot change kind_of_change title_number"),
    "entry": ("pos", "pos owner id number"),
    "span": ("session, name, ord", "session name ord"),
    "checkpoint": ("session, ord", "session ord id"),
    "fact": ("owner, id", "owner id"),
    "token": ("id", "id digest"),
    "raw_copy": ("session, name", "session name"),
    "raw_blob": ("digest", "digest"),
}
COLUMNS = "SELECT name FROM pragma_table_info(?)"
FACTS = ": facts"
"""These stand alone, as sessions do: one that is not found is told by `doctor`, and by nobody else."""


class Found(Counter[str]):
    """Over all copies: `flips` and `swaps`; `same`, `told` and `lost` count what was asked for; `altered` what nobody has written;
    `silent` copies of which something was lost, or whose rows had changed places, without a word of `doctor`; `odd` errors."""

    def is_good(self) -> bool:
        """Whether nothing wrong was given out, and nothing was lost in silence."""
        return not (self["altered"] or self["silent"] or self["odd"])

    def told(self) -> str:
        """In words."""
        return (
            f"{self['flips']:,} single bits flipped and {self['swaps']:,} pairs of right rows swapped in a store of {OWNERS} owners"
            f" with forks, checkpoints, leases, facts, tokens and raw copies: of {self['same'] + self['told'] + self['lost']:,}"
            f" answers {self['told']:,} told as damaged, {self['lost']:,} not found, {self['altered']} given out altered,"
            f" {self['odd']} internal errors; {self['silent']} stores of which `doctor` did not tell"
        )


def run_places(setting: Setting, environment: Environment) -> Outcome:
    """Some bits and rows, to see that a broken program is noticed."""
    found = try_places(setting, environment, setting.of(short=0, full=50), len(SWAPPED))
    return Outcome(met=found.is_good(), figure=found.told())


def try_places(setting: Setting, environment: Environment, flips: int, swaps: int) -> Found:
    """Damage copies of a store, and have them read."""
    whole = setting.folder / "places"
    whole.mkdir()
    secrets: dict[str, str] = asyncio.run(_fill(whole))
    [[expected, problems]] = apart(read_all, environment, folders=[_copied(whole, "read")], secrets=secrets)
    assert not problems, problems
    assert not [what for what, value in expected.items() if value is None or _error(value)], expected
    found, dice = Found(flips=flips, swaps=swaps), setting.dice("places")
    for start in range(0, flips + swaps, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, flips + swaps))
        copies = [_damaged(whole, number, number >= flips, dice) for number in numbers]
        for number, (read, told) in zip(
            numbers, apart(read_all, environment, folders=copies, secrets=secrets), strict=True
        ):
            seen = judged(expected, read, told, swapped=number >= flips)
            if not seen.is_good():
                setting.say(f"place {number}: {dict(seen)} {_differing(expected, read)} {told}"[:2_000])
            found.update(seen)
        for copy in copies:
            shutil.rmtree(copy)
    return found


def judged(expected: Read, read: Read, told: list[str], *, swapped: bool) -> Found:
    """What was read of one copy, beside what was written."""
    found = Found()
    for what, value in expected.items():
        now = read.get(what)
        if now == value:
            found["same"] += 1
        elif now is None or now == [] or (what.endswith(FACTS) and _is_part(now, value)):
            found["lost"] += 1
        else:
            found[_error(now) or "altered"] += 1
    found["odd"] += _error(read.get("store")) == "odd"
    if (found["lost"] or swapped) and not told:
        found["silent"] += 1
    return found


def _is_part(now: Any, value: Any) -> bool:
    """Whether some of a list are there, each as it was."""
    return isinstance(now, list) and all(each in value for each in now)


def _error(value: Any) -> str | None:
    """What kind of error stands in place of an answer."""
    return KINDS.get(value.partition(" ")[0]) if isinstance(value, str) else None


def _differing(expected: Read, read: Read) -> list[str]:
    return [f"{what}: {read.get(what)!s:.300}" for what in expected if read.get(what) != expected[what]][:5]


async def _fill(folder: Path) -> dict[str, str]:
    """Make the store; the secrets of its tokens by owner."""
    secrets = {}
    async with hitherto.open(store_in(folder)) as sessions:
        for number in range(OWNERS):
            who = Principal(owner=f"owner-{number}")
            first = await sessions.create(
                who, session_id=f"first-{number}", title=f"Of {who.owner}", tags=["a"]
            )
            await _talk(sessions, who, first.id)
            await sessions.fork(who, first.id, new_id=f"fork-{number}")
            await _talk(sessions, who, f"fork-{number}")
            rewound = await sessions.create(
                who, session_id=f"rewound-{number}", title=f"Again of {who.owner}"
            )
            await _talk(sessions, who, rewound.id)
            page = await sessions.history(who, rewound.id)
            await sessions.rewind(who, rewound.id, page.entries[2].id)
            await _talk(sessions, who, rewound.id)
            await sessions.leases.acquire(who, first.id, f"holder of {who.owner}", ttl_ms=80_000_000)
            await sessions.memory.add(
                who,
                [
                    Fact(id=f"fact-{number}-{n}", at=n, text=f"{who.owner} likes {n} figs", session=first.id)
                    for n in (1, 2)
                ],
            )
            for name in "ab":
                await sessions.transfer.keep_raw(
                    who, first.id, name, f"file {name} of {who.owner}".encode() * 20
                )
            _, secrets[who.owner] = await sessions.tokens.create(
                who.owner, scopes=["read"] if number % 2 else ["write"]
            )
        await sessions.search(Principal(owner="owner-0"), "nothing")
        await sessions.admin.check(repair=True)
    return secrets


async def _talk(sessions: Sessions, who: Principal, session_id: str) -> None:
    drafts = [
        Draft(role="user", parts=(Text(text=f"{who.owner} says {number} in {session_id}"),))
        for number in range(MESSAGES)
    ]
    await sessions.append(who, session_id, drafts)


def _copied(whole: Path, name: str) -> str:
    copy = whole.parent / f"copy-{name}"
    copy.mkdir()
    for file in FILES:
        shutil.copy(whole / file, copy / file)
    return str(copy)


def _damaged(whole: Path, number: int, swap: bool, dice: random.Random) -> str:
    copy = _copied(whole, str(number))
    file = Path(copy) / FILES[0]
    if swap:
        tables = list(SWAPPED)
        _swap(file, tables[number % len(tables)], dice)
    else:
        data = bytearray(file.read_bytes())
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        file.write_bytes(data)
    return copy


def _swap(file: Path, table: str, dice: random.Random) -> None:
    """Let two rows of a table that differ change places."""
    key, stays = SWAPPED[table]
    database = apsw.Connection(str(file))
    try:
        columns = [name for (name,) in database.execute(COLUMNS, (table,)) if name not in stays.split()]
        keys = database.execute(f"SELECT {key} FROM {table}").fetchall()
        named, where = ", ".join(columns), " AND ".join(f"{name} = ?" for name in key.split(", "))
        one, other = _pair(database, f"SELECT {named} FROM {table} WHERE {where}", keys, dice)
        put = f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in columns)} WHERE {where}"
        database.execute(put, (*other[1], *one[0]))
        database.execute(put, (*one[1], *other[0]))
    finally:
        database.close()


Keyed = tuple[tuple[Any, ...], tuple[Any, ...]]


def _pair(database: apsw.Connection, read: str, keys: list[Any], dice: random.Random) -> tuple[Keyed, Keyed]:
    while True:
        one, other = ((key, next(database.execute(read, key))) for key in dice.sample(keys, 2))
        if one[1] != other[1]:
            return one, other


def read_all(folders: list[str], secrets: dict[str, str]) -> list[tuple[Read, list[str]]]:
    """All that the stores in these folders give, and what their check tells; run by the program under trial."""
    return [asyncio.run(_read(folder, secrets)) for folder in folders]


async def _read(folder: str, secrets: dict[str, str]) -> tuple[Read, list[str]]:
    read: Read = {}
    told: list[str] = []
    try:
        async with hitherto.open(store_in(Path(folder))) as sessions:
            for what, ask in _questions(sessions, secrets):
                read[what] = await _answer(ask)
            checked = await _answer(sessions.admin.check)
            told = [checked] if isinstance(checked, str) else list(checked["problems"])
    except HithertoError as error:  # it does not even open
        read["store"] = f"{DAMAGED} {error}"
        told.append(str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, the trial tells
        read["store"] = f"{ODD} {error!r}"
    return read, told


def _questions(
    sessions: Sessions, secrets: dict[str, str]
) -> Iterator[tuple[str, Callable[[], Awaitable[Any]]]]:
    for number in range(OWNERS):
        who = Principal(owner=f"owner-{number}")
        for name in (f"first-{number}", f"fork-{number}", f"rewound-{number}"):
            yield f"{name}: session", partial(sessions.get, who, name)
            yield f"{name}: history", partial(_history, sessions, who, name, None)
        name = f"rewound-{number}"
        yield f"{name}: checkpoints", partial(sessions.timeline.checkpoints, who, name)
        yield f"{name}: then", partial(_then, sessions, who, name)
        name = f"first-{number}"
        yield f"{name}: lease", partial(sessions.leases.current, who, name)
        yield f"{name}: raw", partial(_raw, sessions, who, name)
        yield f"{who.owner}{FACTS}", partial(sessions.memory.facts, who)
        yield f"{who.owner}: token", partial(sessions.tokens.verify, secrets[who.owner])


async def _history(sessions: Sessions, who: Principal, name: str, checkpoint: str | None) -> list[str]:
    page = await sessions.history(who, name, checkpoint=checkpoint)
    return [raw.decode() for raw in page.raw]


async def _then(sessions: Sessions, who: Principal, name: str) -> list[list[str]]:
    known = await sessions.timeline.checkpoints(who, name)
    return [await _history(sessions, who, name, checkpoint.id) for checkpoint in known]


async def _raw(sessions: Sessions, who: Principal, name: str) -> list[tuple[str, str]]:
    return [(copy.name, copy.data.hex()) for copy in await sessions.transfer.raw(who, name)]


async def _answer(ask: Callable[[], Awaitable[Any]]) -> Any:
    try:
        found = await ask()
    except HithertoError as error:
        is_told = error.code in ("store_damaged", "store_error")
        return f"{DAMAGED} {error}" if is_told else None
    except Exception as error:  # noqa: BLE001 - whatever it is, the trial tells
        return f"{ODD} {error!r}"
    return json.loads(encode(found))  # as it will be when it has come from this process
