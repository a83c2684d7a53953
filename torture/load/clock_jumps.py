"""The clock jumps under a running server: days and weeks ahead and back, beyond the year 2038 and back again."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hitherto
from hitherto.gateway.server import schedule
from hitherto.model import LOCAL, Draft, Text
from hitherto.service import Policy
from tests.gateway.servers import Client, Json, Server, go, serving
from torture.trial.program import Environment, apart, store_in
from torture.trial.row import Outcome, Setting

DAY = 86_400
BEYOND_2038 = 2**31 - int(time.time()) + DAY
JUMPS = (5 * DAY, 0, -5 * DAY, 0, 8 * DAY, 30 * DAY, -8 * DAY, 0, BEYOND_2038, 0)
"""How far ahead of the true time the clock is, one after the other. A key is kept for seven days."""
STARTS = (0, 8 * DAY, 30 * DAY, -30 * DAY, 0)
"""The same for servers that are started one after the other."""
EACH = 20
"""So many messages are said at each time."""
OLD = 20
PASSES = 5
ROUNDS = 2_000


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Go through the jumps while clients append and turns run; then see what a policy deletes meanwhile."""
    rounds = setting.of(short=1, full=10)
    clock = setting.folder / "clock"
    around = {**environment, **false_clock(clock)}
    set_clock(clock, 0)
    with serving(store_in(setting.folder), environment=around, noisy=True) as server:
        told = asyncio.run(_told(server, setting.folder, clock, rounds))
    told += _restarted(setting.folder, clock, around)
    set_clock(clock, 0)
    kept = apart(run_retention, around, place=str(setting.folder), clock=str(clock))
    jumps = rounds * len(JUMPS)
    figure = (
        f"{jumps:,} jumps, {told['acknowledged']:,} acknowledged: {told['lost']:,} lost, {told['moved']:,} histories out of"
        f" order, {told['twice']:,} of {told['repeated']:,} repeated keys done twice, {told['turns']:,} turns across a jump and {told['broken off']:,} broken"
        f" off, {told['refused']:,} requests refused; {kept['gone']:,} of {kept['sessions']:,} sessions of today deleted as"
        " more than 90 days old"
    )
    wrong = ("lost", "moved", "twice", "broken off", "refused")
    return Outcome(
        met=not any(told[each] for each in wrong) and not kept["gone"],
        figure=figure,
        counts={"faults": jumps, "acknowledged": told["acknowledged"], "lost": told["lost"]},
    )


def false_clock(file: Path) -> Mapping[str, str]:
    """The environment in which a process reads its clock from a file. The time that passes is not changed by that."""
    ran = subprocess.run(
        ["faketime", "-m", "-f", "+0", "env"], check=True, capture_output=True, text=True, timeout=60
    )
    preload = next(line for line in ran.stdout.splitlines() if line.startswith("LD_PRELOAD="))
    return {
        "LD_PRELOAD": preload.partition("=")[2],
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def set_clock(file: Path, ahead: int) -> None:
    """Let the clock be so many seconds ahead of the true time, from now on."""
    fresh = file.with_suffix(".new")
    fresh.write_text(f"{ahead:+d}\n", encoding="ascii")
    fresh.replace(file)


# The server


async def _told(server: Server, folder: Path, clock: Path, rounds: int) -> Counter[str]:
    """What became of all that was said and asked."""
    told = Counter[str]()
    async with server.socket() as client, server.socket() as other:
        talk = _Talk(client, (await client.call("session.create", {}))["session_id"], told)
        await talk.say(EACH)
        for number in range(rounds * len(JUMPS)):
            pipe = folder / f"pipe{number}"
            os.mkfifo(pipe)
            turn = await _turn(other, pipe)
            ahead = JUMPS[number % len(JUMPS)]
            set_clock(clock, ahead)
            await talk.say(EACH)
            await talk.repeat()
            go(pipe)
            ended = await other.answer(turn)
            told["turns"] += 1
            told["broken off"] += ended.get("result", {}).get("stop_reason") != "end_turn"
        await talk.compare()
    return told


def _restarted(folder: Path, clock: Path, environment: Environment) -> Counter[str]:
    """What became of what was said to one server and repeated at others that were started with a wrong clock."""
    told, talk = Counter[str](), None
    for ahead in STARTS:
        set_clock(clock, ahead)
        with serving(store_in(folder, "restarted"), environment=environment, noisy=True) as server:
            talk = asyncio.run(_repeated(server, told, talk))
    return told


async def _repeated(server: Server, told: Counter[str], before: _Talk | None) -> _Talk:
    async with server.socket() as client:
        if before is None:
            before = _Talk(client, (await client.call("session.create", {}))["session_id"], told)
            await before.say(EACH)
        before.client = client
        await before.repeat()
    return before


async def _turn(client: Client, pipe: Path) -> int:
    """Begin a turn that goes on when something is written to the pipe; the number of the request."""
    session_id = (await client.call("session.create", {}))["session_id"]
    number = await client.begin("session.send", {"session_id": session_id, "content": f"wait {pipe}"})
    await client.eventually(
        "session.get", {"session_id": session_id}, lambda found: found["status"] == "running"
    )
    return number


class _Talk:
    """One session, and what was said in it."""

    def __init__(self, client: Client, session_id: str, told: Counter[str]) -> None:
        self.client, self._told = client, told
        self._named = {"session_id": session_id}
        self._acknowledged: list[str] = []
        self._answered: list[tuple[Json, Any]] = []

    async def say(self, count: int) -> None:
        """Append, each message with a key."""
        for _ in range(count):
            text = f"said {len(self._acknowledged) + self._told['refused']}"
            asked = {**self._named, "messages": [{"role": "user", "content": text}], "idempotency_key": text}
            answer = await self.client.rpc("session.append", asked)
            if "result" not in answer:
                self._told["refused"] += 1
                continue
            self._acknowledged.append(text)
            self._told["acknowledged"] += 1
            self._answered.append((asked, answer["result"]))

    async def repeat(self) -> None:
        """Ask the first request again, and the last of each time: they are answered as they were and not done again."""
        for asked, answered in (self._answered[0], *self._answered[EACH - 1 :: EACH]):
            self._told["repeated"] += 1
            self._told["twice"] += (await self.client.rpc("session.append", asked)).get("result") != answered

    async def compare(self) -> None:
        """Hold the history to what was acknowledged."""
        messages: list[Json] = []
        before: Json = {}
        while True:
            page = await self.client.call("session.history", {**self._named, "limit": 1_000, **before})
            messages = page["messages"] + messages
            if "previous" not in page:
                break
            before = {"before": page["previous"]}
        found = [message["content"] for message in messages]
        stamps = [message["timestamp"] for message in messages]
        if max(stamps) - min(stamps) < BEYOND_2038 * 1_000:
            raise RuntimeError("the server did not see the clock jump")
        self._told["lost"] += len(set(self._acknowledged) - set(found))
        self._told["twice"] += len(found) - len(set(found))
        self._told["moved"] += found != self._acknowledged


# What a policy deletes


def run_retention(place: str, clock: str) -> Json:
    """Keep to a policy that deletes what is older than 90 days while the clock jumps; how many sessions it took."""
    return asyncio.run(_swept(Path(place), Path(clock)))


async def _swept(place: Path, clock: Path) -> Json:
    policy, passes = Policy(older_than_ms=90 * DAY * 1_000, spare_read_ms=0, delete=True), 0
    async with hitherto.open(store_in(place, "kept")) as sessions:
        for _ in range(OLD):
            made = await sessions.create(LOCAL)
            await sessions.append(LOCAL, made.id, Draft(role="user", parts=(Text(text="said today"),)))
        owners = sessions.admin.owners

        async def counted() -> list[str]:
            nonlocal passes
            passes += 1
            return await owners()

        sessions.admin.owners = counted  # type: ignore[method-assign]
        keeping = asyncio.create_task(schedule.prune_regularly(policy, sessions, 0.001))
        try:
            for ahead in JUMPS:
                set_clock(clock, ahead)
                done = passes + PASSES
                for _ in range(ROUNDS):
                    if passes < done:
                        await asyncio.sleep(0.001)
                if passes < done:
                    raise RuntimeError("the policy is not kept to any more")
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])
        left = len((await sessions.find(LOCAL, limit=OLD)).sessions)
    return {"sessions": OLD, "gone": OLD - left}
