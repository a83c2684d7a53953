"""The disk is full, and there is space again: through the server, through the command, and in other agents' files."""

from __future__ import annotations

import asyncio
import errno
import itertools
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from bench.workloads.messages import prose
from bench.workloads.server_load import served
from hitherto.cli.terminal.exit_codes import STORE
from torture.clients.acknowledged import (
    Client,
    Json,
    Judged,
    Pages,
    Refusal,
    clients,
    code_of,
    judged,
    mark_for,
)
from torture.trial import disks
from torture.trial.program import Environment, apart, store_in
from torture.trial.row import Outcome, Setting

DISK_MB, GROWTH_MB = 64, 4
"""The size of the disk, and how much more it is for each time that it is filled: what was stored stays there."""
CLIENTS = 2
ROOM = 2_000_000
"""At most so many bytes are left when the disk is filled."""
REFUSALS = 5
"""So often a client is refused before there is space again. Until then much may be stored: the log of the store begins again
from its start, and needs no space for what is not longer than it was."""
CHANGES = 200
"""At most so often a change of a transcript is tried until it is refused."""
FULL = "store_full"
TYPED = "on the command line"
PATIENCE = 60
SESSION = str(UUID(int=7))
PROMPT = {
    "type": "user", "uuid": str(UUID(int=8)), "parentUuid": None, "sessionId": SESSION, "cwd": "/project",
    "timestamp": "2026-01-01T00:00:00.000Z", "message": {"role": "user", "content": "Hello"},
}  # fmt: skip


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Fill the disk again and again, while clients append and sessions are renamed."""
    fills = setting.of(short=3, full=100)
    size = f"size={DISK_MB + GROWTH_MB * fills}m"
    with disks.memory(setting.folder / "disk", size) as disk:
        told, verdict = asyncio.run(_filled(setting, disk, environment, fills))
    with disks.memory(setting.folder / "disk", size) as disk:
        titles = apart(renamed, environment, place=str(disk), fills=fills, seed=setting.seed)
    figure = (
        f"a disk of {DISK_MB + GROWTH_MB * fills} MB, {told['filled']:,} of {fills:,} fills in which every client was"
        f" refused; {verdict.acknowledged:,} acknowledged: {verdict.lost:,} lost, {told[FULL]:,} refused as {FULL},"
        f" {told['other']:,} in other words, {told['stuck']:,} fills not overcome; {verdict.faults()};"
        f" {titles['filled']:,} of {fills:,} fills in which changes of transcripts and a fork were refused;"
        f" {titles['kept']:,} changes kept: {titles['lost']:,} lost, {titles['torn']:,} torn lines,"
        f" {titles['refused']:,} refused, {titles['other']:,} of them in other words"
    )
    wrong = (told["other"], told["stuck"], titles["lost"], titles["torn"], titles["other"])
    return Outcome(
        met=verdict.whole and not any(wrong) and told["filled"] == titles["filled"] == fills,
        figure=figure,
        counts={
            "faults": told["filled"] + titles["filled"],
            "acknowledged": verdict.acknowledged + titles["kept"],
            "lost": verdict.lost + titles["lost"],
        },
    )


@contextmanager
def filled(place: Path, dice: random.Random, most: int = ROOM) -> Iterator[None]:
    """A disk with at most so much space, until the block ends."""
    ballast, left = place / "ballast", dice.randint(0, most)
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while not _is_taken(descriptor, left):
            pass
        yield
    finally:
        os.close(descriptor)
        ballast.unlink()


def _is_taken(descriptor: int, left: int) -> bool:
    """Take all space but so much; False if somebody else took some meanwhile."""
    state = os.fstatvfs(descriptor)
    size = state.f_bavail * state.f_bsize - left
    try:
        if size > 0:
            os.posix_fallocate(descriptor, 0, os.fstat(descriptor).st_size + size)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True


# The server and the command


async def _filled(
    setting: Setting, disk: Path, environment: Environment, fills: int
) -> tuple[Counter[str], Judged]:
    dice, told, most = setting.dice("fills"), Counter[str](), setting.of(short=400, full=5_000)
    with (setting.folder / "log").open("wb") as log, served(disk, environment, log) as server:
        async with clients(server, CLIENTS + 1, dice) as (typist, *them):
            for number in range(fills):
                with filled(disk, dice):
                    refused = await asyncio.gather(*(_until_full(client, most) for client in them))
                    told += sum(refused, Counter())
                    told["filled"] += all(each.total() == REFUSALS for each in refused)
                    told["other"] += await _unread(them[0])
                    told[_typed(disk, environment, typist.pages, f"typed{number}full")] += 1
                # No waiting, no second try: there is space, so it is stored.
                told["stuck"] += any([await client.say() is not None for client in them])
                if number % 10 == 0:
                    told["stuck"] += bool(_typed(disk, environment, typist.pages, f"typed{number}free"))
                if told["filled"] <= number:  # somebody was never refused: to go on would show nothing more
                    break
            pages = [client.pages for client in (typist, *them)]
    return told, await judged(store_in(disk), pages)


async def _until_full(client: Client, most: int) -> Counter[str]:
    """Append until there is no more space, and some more: now and then a short message still finds a place."""
    told = Counter[str]()
    for _ in range(most):
        code = await client.say()
        if code is not None:
            told[FULL if code == FULL else "other"] += 1
        if told.total() == REFUSALS:
            break
    return told


async def _unread(client: Client) -> int:
    """How many of some questions are not answered, though they need no space."""
    named = {"session_id": client.pages.session_id}
    asked: dict[str, Json] = {"session.history": named, "session.list": {}, "session.get": named}
    return sum([code_of(await client.ask(method, params)) is not None for method, params in asked.items()])


def _typed(disk: Path, environment: Environment, pages: Pages, name: str) -> str:
    """`hitherto append` beside the server; how it was refused, if it was."""
    mark = mark_for(name, TYPED)
    ran = subprocess.run(
        [sys.executable, "-m", "hitherto", "append", pages.session_id, f"{mark} {TYPED}"],
        env={**os.environ, **environment, "HITHERTO_DATA_DIR": str(disk)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    if ran.returncode == 0:
        pages.acknowledged.append(mark)
        return ""
    known = ran.returncode == STORE and ran.stderr.rstrip().endswith(f"[{FULL}]")
    pages.refused.append(Refusal(mark, FULL if known else ran.stderr))
    return FULL if known else "other"


# Transcripts of Claude Code


def renamed(place: str, fills: int, seed: int) -> Mapping[str, int]:
    """Give a session titles and tags, and fork it, on a disk that is full again and again; what became of that."""
    from hitherto.claude import fork_session, rename_session, tag_session

    dice, told = random.Random(seed), Counter[str](filled=0, kept=0, lost=0, torn=0, refused=0, other=0)
    os.environ["CLAUDE_CONFIG_DIR"] = place
    transcript = Path(place, "projects", "-project", f"{SESSION}.jsonl")
    transcript.parent.mkdir(parents=True)
    transcript.write_text(f"{json.dumps(PROMPT)}\n", encoding="ascii")
    kept: list[str] = []

    def is_done(work: Callable[[], object]) -> bool:
        try:
            work()
        except OSError as error:
            told["refused"] += 1
            told["other"] += error.errno != errno.ENOSPC
            return False
        return True

    def change() -> bool:
        title = f"title {next(numbers)} {prose(dice, dice.randint(5, 2_000)).strip()}"
        work: Callable[[str, str], object] = dice.choice((rename_session, rename_session, tag_session))
        done = is_done(lambda: work(SESSION, title))
        kept.extend([title] if done else [])
        return done

    def fork() -> bool:
        return is_done(lambda: fork_session(SESSION))

    numbers = itertools.count()
    for _ in range(fills):
        with filled(Path(place), dice, 20_000):
            # A short one may still find a place where a long one did not: each is tried until it is refused.
            refused = [any(not work() for _ in range(CHANGES)) for work in (change, change, fork)]
            told["filled"] += all(refused)
        told["other"] += not change()
    files = list(transcript.parent.iterdir())
    lines = [line for file in files for line in file.read_bytes().split(b"\n")[:-1]]
    torn = [line for line in lines if not _is_record(line)]
    unended = [file for file in files if not file.read_bytes().endswith(b"\n") or file.suffix != ".jsonl"]
    stored = {
        record.get("customTitle") or record.get("tag") for record in map(json.loads, set(lines) - set(torn))
    }
    told.update(kept=len(kept), lost=len(set(kept) - stored), torn=len(torn) + len(unended))
    return told


def _is_record(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False
