"""Sessions of seven agents with shuffled times, and what they used by a plain reading of their files.

`python -m tests.sources.spent_sessions 10000` makes so many, syncs them and compares every sum.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import hitherto
from hitherto.model import LOCAL
from hitherto.service import Sessions
from hitherto.sources import AGENTS
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Sync, find_all
from tests.sources.codex.codex_files import CodexWriter
from tests.sources.gemini import gemini_files
from tests.sources.gemini.gemini_files import GeminiWriter
from tests.sources.goose import goose_files
from tests.sources.goose.goose_files import GooseWriter
from tests.sources.openclaw import openclaw_files
from tests.sources.opencode import opencode_files
from tests.sources.opencode.opencode_files import OpencodeWriter
from tests.sources.pi.pi_files import PiWriter

FIRST, DAYS = 1_735_689_600, 364
"""Times are spread over the year from 2025-01-01 on."""
CLAUDE = (
    "claude-sonnet-4-5-20250929",
    "claude-opus-4-5-20251101",
    "claude-haiku-4-5-20251001",
    "nobody-knows",
)


class Spent(NamedTuple):
    """One request, as its file tells it. `key` tells copies of it."""

    agent: str
    at: float
    model: str
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost: float | None
    key: object


class Sums(NamedTuple):
    """Requests added up; money in dollars."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def plus(self, one: Spent, cost: float | None) -> Sums:
        return Sums(
            self.requests + 1,
            self.input + one.input,
            self.output + one.output,
            self.cache_read + one.cache_read,
            self.cache_write + one.cache_write,
            self.cost + (cost or 0.0),
            self.unpriced + (cost is None),
        )


def iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def session_id(rng: random.Random) -> str:
    return f"{rng.getrandbits(32):08x}-1111-4000-8000-{rng.getrandbits(48):012x}"


# What agents write


def write_claude(home: Path, rng: random.Random, count: int) -> None:
    """Each answer in one to three blocks that repeat its usage; a fifth of the sessions begins as a copy of another."""
    folder = home / "projects" / "-srv-engine"
    folder.mkdir(parents=True)
    made: list[list[dict[str, Any]]] = []
    for _ in range(count):
        own, at = session_id(rng), float(FIRST + rng.randrange(DAYS * 86_400))
        records = []
        if made and rng.random() < 0.2:
            source = rng.choice(made)
            records = [{**record, "sessionId": own} for record in source[: rng.randrange(2, len(source) + 1)]]
            at = max(seconds(records[-1]["timestamp"]), at)
        records += claude_turns(rng, own, at, records[-1]["uuid"] if records else None)
        made.append(records)
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{own}.jsonl").write_text(lines, encoding="utf-8")


def claude_turns(rng: random.Random, own: str, at: float, parent: str | None) -> Iterator[dict[str, Any]]:
    for number in range(rng.randrange(1, 6)):
        at += rng.randrange(1, 90_000)
        answer, request = f"msg_{rng.getrandbits(64):x}", f"req_{rng.getrandbits(64):x}"
        usage = {"input_tokens": rng.randrange(50), "cache_read_input_tokens": rng.randrange(190_000)}
        usage |= {"cache_creation_input_tokens": rng.randrange(9_000), "output_tokens": 0}
        model, written = rng.choice(CLAUDE), rng.randrange(1, 4_000)
        said: list[tuple[str, Any, dict[str, Any]]] = [("user", f"Question {number}?", {})]
        for block in range(1, rng.randrange(2, 5)):
            grown = {**usage, "output_tokens": written * block}
            told = {"id": answer, "model": model, "usage": grown}
            said.append(("assistant", [{"type": "text", "text": f"Answer {block}."}], told))
        for kind, content, more in said:
            uuid = session_id(rng)
            yield {
                "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": own, "timestamp": iso(at),
                "cwd": "/srv/engine", "message": {"role": kind, "content": content, **more},
                **({"requestId": request} if more else {}),
            }  # fmt: skip
            parent = uuid


def write_codex(home: Path, rng: random.Random, count: int) -> None:
    """Rollouts in both forms, in which some counts are repeated."""
    for _ in range(count):
        writer = CodexWriter(rng.choice(("legacy", "paginated")), session_id(rng))
        for number in range(rng.randrange(1, 6)):
            writer.user(f"Question {number}?", model=rng.choice(("gpt-5", "gpt-5.1-codex", "gpt-4o")))
            writer.say(f"Answer {number}.")
            writer.records.pop()  # what it used, which follows with other numbers
            writer.used(rng.randrange(1, 9_000), rng.randrange(90_000), rng.randrange(1, 5_000))
            if rng.random() < 0.3:
                writer.records.append(json.loads(json.dumps(writer.records[-1])))
            writer.end()
        at = FIRST + rng.randrange(DAYS * 86_400)
        for record in writer.records:
            at += rng.randrange(1, 5_000)
            record["timestamp"] = iso(at)
        writer.save(home)


def write_gemini(home: Path, rng: random.Random, count: int) -> None:
    gemini_files.mark(home)
    for _ in range(count):
        writer = GeminiWriter(session_id(rng))
        for number in range(rng.randrange(1, 6)):
            writer.user(f"Question {number}?")
            cached, fresh, output, thoughts = (
                rng.randrange(1, most) for most in (90_000, 150_000, 4_000, 900)
            )
            tokens = {"input": cached + fresh, "output": output, "cached": cached, "thoughts": thoughts}
            model = rng.choice(("gemini-2.5-pro", "gemini-2.5-flash"))
            writer.add("gemini", f"Answer {number}.", model=model, tokens=tokens)
        at = FIRST + rng.randrange(DAYS * 86_400)
        for record in writer.records:
            if "timestamp" in record:
                at += rng.randrange(1, 30_000)
                record["timestamp"] = iso(at)
        writer.save(home)


def pi_session(rng: random.Random) -> PiWriter:
    writer = PiWriter(session_id(rng))
    at = FIRST + rng.randrange(DAYS * 86_400)
    for number in range(rng.randrange(1, 6)):
        writer.user(f"Question {number}?")
        usage: dict[str, Any] = {"input": rng.randrange(1, 9_000), "output": rng.randrange(1, 4_000)}
        usage |= {"cacheRead": rng.randrange(90_000), "cacheWrite": rng.randrange(4_000)}
        if rng.random() < 0.5:
            usage["cost"] = {"total": rng.randrange(1, 900_000) / 1_000_000}
        told = {"usage": usage, "provider": "anthropic", "model": rng.choice(CLAUDE)}
        writer.answer({"type": "text", "text": f"Answer {number}."}, **told)
    for record in writer.records:
        at += rng.randrange(1, 30_000)
        record["timestamp"] = iso(at)
    return writer


def write_pi(home: Path, rng: random.Random, count: int) -> None:
    for _ in range(count):
        pi_session(rng).save(home)


def write_openclaw(home: Path, rng: random.Random, count: int) -> None:
    for _ in range(count):
        openclaw_files.save(home, pi_session(rng))


def write_goose(home: Path, rng: random.Random, count: int) -> None:
    writer = GooseWriter(home)
    for number in range(count):
        own = writer.session(f"20250101_{number + 1}", provider_name="anthropic")
        writer.now = FIRST + rng.randrange(DAYS * 86_400)
        for turn in range(rng.randrange(1, 6)):
            writer.now += rng.randrange(1, 30_000)
            writer.user(f"Question {turn}?", session=own)
            writer.message("assistant", goose_files.text(f"Answer {turn}."), session=own)
            used = {"input_tokens": rng.randrange(1, 90_000), "output_tokens": rng.randrange(1, 4_000)}
            cost = rng.randrange(1, 900_000) / 1_000_000 if rng.random() < 0.5 else None
            told = {"session_id": own, "created_timestamp": writer.now, "model": rng.choice(CLAUDE)}
            writer.add("usage_ledger", **told, **used, cache_read_tokens=used["input_tokens"] // 2, cost=cost)


def write_opencode(home: Path, rng: random.Random, count: int) -> None:
    writer = OpencodeWriter(home)
    for number in range(count):
        at = (FIRST + rng.randrange(DAYS * 86_400)) * 1_000
        own = writer.session(f"ses_{number:08x}", time_created=at, time_updated=at)
        for turn in range(rng.randrange(1, 6)):
            for role in ("user", "assistant"):
                at += rng.randrange(1_000, 30_000_000)
                id = f"msg_{number:08x}{turn}{role[0]}"
                data: dict[str, Any] = {"role": role, "time": {"created": at}}
                if role == "assistant":
                    read, write = rng.randrange(90_000), rng.randrange(4_000)
                    tokens = {"input": rng.randrange(1, 9_000), "output": rng.randrange(1, 4_000)}
                    data["tokens"] = {
                        **tokens,
                        "reasoning": rng.randrange(500),
                        "cache": {"read": read, "write": write},
                    }
                    data |= {"modelID": rng.choice(CLAUDE), "providerID": "anthropic"}
                    data["cost"] = rng.randrange(1, 900_000) / 1_000_000
                writer.add("message", id=id, session_id=own, time_created=at, data=data)
                part = opencode_files.text(f"Said {turn}.")
                writer.add("part", id=f"prt_{id}", message_id=id, session_id=own, data=part)
            writer.run("UPDATE session SET time_updated = ? WHERE id = ?", at, own)


# What their files say, read plainly


def records_in(home: Path) -> Iterator[list[dict[str, Any]]]:
    for path in sorted(home.rglob("*.jsonl")):
        yield [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_claude(home: Path) -> Iterator[Spent]:
    found: dict[object, Spent] = {}
    for records in records_in(home):
        for record in records:
            if record["type"] == "assistant":
                message, used = record["message"], record["message"]["usage"]
                read, written = used["cache_read_input_tokens"], used["cache_creation_input_tokens"]
                key = (message["id"], record["requestId"])
                at, known = seconds(record["timestamp"]), found.get(key)
                whole = used["input_tokens"] + read + written
                output = max(used["output_tokens"], known.output if known else 0)
                found[key] = Spent("claude", at, message["model"], whole, output, read, written, None, key)
    yield from found.values()


def read_codex(home: Path) -> Iterator[Spent]:
    for records in records_in(home):
        model, answered, total = "", 0.0, None
        paginated = records[0]["payload"]["history_mode"] == "paginated"
        for record in records:
            payload = record["payload"]
            if record["type"] == "turn_context":
                model = payload["model"]
            shown = payload.get("item", {}).get("type") == "AgentMessage"
            said = payload.get("role") == "assistant" and payload["type"] == "message"
            if shown if paginated else said:
                answered = seconds(record["timestamp"])
            if payload.get("type") == "token_count":
                info = payload["info"]
                if info["total_token_usage"]["total_tokens"] == total:
                    continue
                total, used = info["total_token_usage"]["total_tokens"], info["last_token_usage"]
                counts = (used["input_tokens"], used["output_tokens"], used["cached_input_tokens"], 0)
                yield Spent("codex", answered, model, *counts, None, object())


def read_gemini(home: Path) -> Iterator[Spent]:
    for records in records_in(home):
        for record in records:
            if record.get("type") == "gemini":
                used, at = record["tokens"], seconds(record["timestamp"])
                counts = (used["input"], used["output"] + used["thoughts"], used["cached"], 0)
                yield Spent("gemini", at, record["model"], *counts, None, object())


def read_pi(home: Path, agent: str = "pi") -> Iterator[Spent]:
    for records in records_in(home):
        for record in records:
            message = record.get("message", {})
            if message.get("role") == "assistant":
                used, model = message["usage"], f"anthropic:{message['model']}"
                read, written = used["cacheRead"], used["cacheWrite"]
                counts = (used["input"] + read + written, used["output"], read, written)
                cost = used["cost"]["total"] if "cost" in used else None
                yield Spent(agent, seconds(record["timestamp"]), model, *counts, cost, object())


def read_openclaw(home: Path) -> Iterator[Spent]:
    return read_pi(home, "openclaw")


def read_goose(home: Path) -> Iterator[Spent]:
    with sqlite3.connect(home / "sessions" / "sessions.db") as db:
        statement = "SELECT created_timestamp, model, input_tokens, output_tokens, cache_read_tokens, cost FROM usage_ledger"
        for at, model, used, output, read, cost in db.execute(statement):
            yield Spent("goose", at, f"anthropic:{model}", used, output, read, 0, cost, object())
    db.close()


def read_opencode(home: Path) -> Iterator[Spent]:
    with sqlite3.connect(home / "opencode.db") as db:
        for (text,) in db.execute("SELECT data FROM message"):
            data = json.loads(text)
            if data["role"] == "assistant":
                used, model = data["tokens"], f"{data['providerID']}:{data['modelID']}"
                read, written = used["cache"]["read"], used["cache"]["write"]
                counts = (used["input"] + read + written, used["output"] + used["reasoning"], read, written)
                yield Spent(
                    "opencode", data["time"]["created"] / 1_000, model, *counts, data["cost"], object()
                )
    db.close()


WRITERS: dict[str, Callable[[Path, random.Random, int], None]] = {
    "claude": write_claude,
    "codex": write_codex,
    "gemini": write_gemini,
    "pi": write_pi,
    "openclaw": write_openclaw,
    "goose": write_goose,
    "opencode": write_opencode,
}
READERS: dict[str, Callable[[Path], Iterator[Spent]]] = {
    "claude": read_claude,
    "codex": read_codex,
    "gemini": read_gemini,
    "pi": read_pi,
    "openclaw": read_openclaw,
    "goose": read_goose,
    "opencode": read_opencode,
}


def price(one: Spent) -> float | None:
    """What a request cost: as told, else by the price list, asked anew for each."""
    from genai_prices import Usage, calc_price

    if one.cost is not None:
        return one.cost
    used = Usage(
        input_tokens=one.input,
        output_tokens=one.output,
        cache_read_tokens=one.cache_read,
        cache_write_tokens=one.cache_write,
    )
    moment = datetime.fromtimestamp(one.at, UTC)
    try:
        found = calc_price(used, one.model.rpartition(":")[2], genai_request_timestamp=moment)
    except LookupError:
        return None
    return float(found.total_price)


def make(home: Path, count: int, seed: int = 1) -> list[Spent]:
    """So many sessions of each agent, each agent in its folder; and what their files say."""
    rng = random.Random(seed)
    for agent, write in WRITERS.items():
        write(home / agent, rng, count)
    return [one for agent, read in READERS.items() for one in read(home / agent)]


async def sync(sessions: Sessions, home: Path) -> None:
    """Read all of them, in an order that is not that of their times."""
    sources = [AGENTS[agent].at(home / agent) for agent in sorted(WRITERS, reverse=True)]
    ledger = Ledger(home / "ledger.db")
    try:
        await Sync(sessions, LOCAL, ledger).run(sources, find_all(sources))
    finally:
        ledger.close()


def expected(spent: list[Spent], of: Callable[[Spent], object]) -> dict[object, Sums]:
    """The sums by something."""
    found: defaultdict[object, Sums] = defaultdict(Sums)
    for one in spent:
        found[of(one)] = found[of(one)].plus(one, price(one))
    return dict(found)


async def told(sessions: Sessions, **how: Any) -> dict[object, Sums]:
    """The same as the service tells them."""
    report = await sessions.spending.report(LOCAL, since_day="2025-01-01", until_day="2026-02-28", **how)
    assert report.complete
    return {
        (row.period, row.name): Sums(
            row.usage.requests,
            row.usage.input,
            row.usage.output,
            row.usage.cache_read,
            row.usage.cache_write,
            row.usage.cost or 0.0,
            row.usage.unpriced,
        )
        for row in report.rows
    }


def differences(one: dict[object, Sums], other: dict[object, Sums]) -> list[object]:
    """Where two tables of sums differ: in a count at all, in money by more than rounding each request."""
    differ: list[object] = []
    for name in one.keys() | other.keys():
        a, b = one.get(name, Sums()), other.get(name, Sums())
        money = abs(a.cost - b.cost) > 0.000_002 * max(a.requests, 1)
        if a._replace(cost=0.0) != b._replace(cost=0.0) or money:
            differ.append((name, a, b))
    return differ


def day(one: Spent) -> str:
    return iso(one.at)[:10]


def week(one: Spent) -> str:
    return "{:04}-W{:02}".format(*datetime.fromtimestamp(one.at, UTC).isocalendar())


COMPARED: dict[str, tuple[dict[str, Any], Callable[[Spent], object]]] = {
    "days": ({"period": "day"}, lambda one: (day(one), None)),
    "weeks by model": ({"period": "week", "by": "model"}, lambda one: (week(one), one.model)),
    "months by agent": ({"period": "month", "by": "agent"}, lambda one: (day(one)[:7], one.agent)),
    "all": ({"period": None}, lambda _: (None, None)),
}


async def main(count: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        spent = make(home, max(count // len(WRITERS), 1))
        async with hitherto.open(f"sqlite:///{home / 'store.db'}") as sessions:
            await sync(sessions, home)
            while not await sessions.spending.count(LOCAL):
                pass
            wrong = 0
            for name, (how, of) in COMPARED.items():
                differ = differences(await told(sessions, **how), expected(spent, of))
                wrong += len(differ)
                sys.stdout.write(f"{name}: {len(spent)} requests, {len(differ)} sums differ\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 210)))
