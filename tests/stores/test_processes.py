"""Eight processes on one store: nobody is turned away, nothing is lost, nothing is there twice."""

from __future__ import annotations

import asyncio
import sys
from typing import NamedTuple

import hitherto
from hitherto.model import Principal
from hitherto.service import Sessions
from tests.support.append_worker import OWNER
from tests.support.conversations import finds, say, told
from tests.support.homes import Home
from tests.support.paths import ROOT
from tests.support.waits import arrives, within

WORKERS = 8
APPENDS = 40


class Acknowledged(NamedTuple):
    """What a worker printed when its append had returned."""

    session: str
    entry: str
    revision: int
    text: str


async def start(url: str, name: str, *session_ids: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.support.append_worker", url, name, str(APPENDS), *session_ids),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def ready(worker: asyncio.subprocess.Process) -> None:
    assert worker.stdout is not None
    assert await arrives(worker.stdout.readline(), "a worker to be ready") == b"ready\n"


async def finished(worker: asyncio.subprocess.Process) -> list[Acknowledged]:
    """Let it run, and read what it says; a worker that met an error ends with it."""
    out, err = await arrives(worker.communicate(b"go\n"), "a worker to finish")
    assert (worker.returncode, err.decode()) == (0, "")
    lines = [line.split(" ", 3) for line in out.decode().splitlines()]
    return [Acknowledged(session, entry, int(revision), text) for session, entry, revision, text in lines]


async def run_workers(url: str, commands: dict[str, list[str]]) -> dict[str, list[Acknowledged]]:
    """Start a worker for each name, let all begin together, and return what each was told."""
    workers = {name: await start(url, name, *session_ids) for name, session_ids in commands.items()}
    try:
        await asyncio.gather(*map(ready, workers.values()))
        told = await asyncio.gather(*map(finished, workers.values()))
    finally:
        for worker in workers.values():
            if worker.returncode is None:
                worker.kill()
                await arrives(worker.wait(), "the end of a killed worker")
    return dict(zip(workers, told, strict=True))


async def test_eight_processes_append_to_one_session_and_to_their_own(shared_home: Home) -> None:
    names = [f"worker{number}" for number in range(WORKERS)]
    async with hitherto.open(shared_home.url) as sessions:
        common = await sessions.create(OWNER, session_id="common")
        for name in names:
            await sessions.create(OWNER, session_id=f"own-{name}")
        answers = await run_workers(shared_home.url, {name: [common.id, f"own-{name}"] for name in names})
        await check_common(sessions, answers)
        for name in names:
            assert await told(sessions, OWNER, f"own-{name}") == [
                f"{name} {number}" for number in range(APPENDS)
            ]
            own = await sessions.get(OWNER, f"own-{name}")
            assert (own.message_count, own.revision) == (APPENDS, 1 + APPENDS + APPENDS // 10)
        assert (await sessions.admin.check(repair=False)).problems == ()
        assert common.id in await finds(sessions, OWNER, f"{names[0]} {APPENDS - 1}")


async def check_common(sessions: Sessions, answers: dict[str, list[Acknowledged]]) -> None:
    """Every acknowledged append is there once, in the order in which its worker made it; the counters agree."""
    page = await sessions.history(OWNER, "common", limit=10_000)
    acknowledged = [each for said in answers.values() for each in said if each.session == "common"]
    assert len(acknowledged) == WORKERS * APPENDS
    assert sorted(entry.id for entry in page.entries) == sorted(each.entry for each in acknowledged)
    texts = await told(sessions, OWNER, "common")
    for name in answers:
        assert [text for text in texts if text.startswith(f"{name} ")] == [
            f"{name} {n}" for n in range(APPENDS)
        ]
    found = await sessions.get(OWNER, "common")
    tags = WORKERS * (APPENDS // 10)
    assert (found.message_count, found.bytes) == (len(page.raw), sum(map(len, page.raw)))
    assert (found.revision, len(found.tags)) == (1 + len(page.raw) + tags, tags)
    # No two appends were told the same revision, and each was told a later one than its entry's neighbours before.
    revisions = {each.entry: each.revision for each in acknowledged}
    in_order = [revisions[entry.id] for entry in page.entries]
    assert in_order == sorted(set(in_order))


async def test_what_was_acknowledged_outlives_the_process_that_was_told_so(shared_home: Home) -> None:
    async with hitherto.open(shared_home.url) as sessions:
        await sessions.create(OWNER, session_id="one")
        told_so: list[str] = []
        for number in range(3):
            worker = await start(shared_home.url, f"worker{number}", "one")
            await ready(worker)
            told_so += [line.split()[1] for line in await killed_after(worker, 5 + number)]
        page = await sessions.history(OWNER, "one", limit=10_000)
        assert set(told_so) <= {entry.id for entry in page.entries}
        assert (await sessions.get(OWNER, "one")).message_count == len(page.raw)
        assert (await sessions.admin.check(repair=False)).problems == ()


async def killed_after(worker: asyncio.subprocess.Process, appends: int) -> list[str]:
    """Let it go and kill it when it has said so many times that an append was done; returns all that it said."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(b"go\n")
    async with within(f"{appends} acknowledged appends"):
        lines = [await worker.stdout.readline() for _ in range(appends)]
    worker.kill()
    rest = await arrives(worker.stdout.read(), "the rest of what a killed worker said")
    lines += rest.splitlines(keepends=True)
    await arrives(worker.wait(), "the end of a killed worker")
    return [line.decode().strip() for line in lines if line.endswith(b"\n")]


async def test_edits_through_two_connections_at_once_each_raise_the_revision_once(shared_home: Home) -> None:
    who = Principal(owner="ann")
    async with hitherto.open(shared_home.url) as one, hitherto.open(shared_home.url) as two:
        session = await one.create(who, title="Start")
        edits = []
        for number in range(20):
            edits += [
                one.rename(who, session.id, f"One {number}"),
                two.rename(who, session.id, f"Two {number}"),
            ]
            edits += [
                one.tag(who, session.id, add=[f"a{number}"]),
                two.tag(who, session.id, add=[f"b{number}"]),
            ]
        revisions = [done.revision for done in await asyncio.gather(*edits)]
        assert sorted(revisions) == list(range(2, 82))
        found = await one.get(who, session.id)
        assert found == await two.get(who, session.id)
        assert (found.revision, len(found.tags)) == (81, 40)
        assert len(await two.changes.since(who)) == 1


async def test_appends_through_two_connections_at_once_leave_no_gap(shared_home: Home) -> None:
    who = Principal(owner="ann")
    async with hitherto.open(shared_home.url) as one, hitherto.open(shared_home.url) as two:
        session = await one.create(who)
        calls = [
            each.append(who, session.id, say(f"{name} {number}"), idempotency_key=f"{number}-{name}")
            for number in range(30)
            for name, each in (("one", one), ("two", two), ("one", two))
        ]
        answers = await asyncio.gather(*calls)
        texts = await told(two, who, session.id)
        assert sorted(texts) == sorted(f"{name} {number}" for number in range(30) for name in ("one", "two"))
        assert len({entry for done in answers for entry in done.entries}) == 60
        assert (await one.get(who, session.id)).message_count == 60


async def test_only_one_of_many_gets_the_lease(shared_home: Home) -> None:
    who = Principal(owner="ann")
    async with hitherto.open(shared_home.url) as one, hitherto.open(shared_home.url) as two:
        session = await one.create(who)
        tried = await asyncio.gather(
            *(
                each.leases.acquire(who, session.id, f"h{number}", ttl_ms=600_000)
                for number in range(10)
                for each in (one, two)
            ),
            return_exceptions=True,
        )
        held = [lease for lease in tried if not isinstance(lease, BaseException)]
        assert len(held) == 1
        assert {type(error).__name__ for error in tried if isinstance(error, BaseException)} == {"Busy"}
        assert await two.leases.current(who, session.id) == held[0]


async def test_forks_and_deletions_at_once_lose_nothing_that_is_shared(shared_home: Home) -> None:
    who = Principal(owner="ann")
    async with hitherto.open(shared_home.url) as one, hitherto.open(shared_home.url) as two:
        for _ in range(8):
            source = await one.create(who)
            await one.append(who, source.id, [say(f"m{number}") for number in range(30)])
            results = await asyncio.gather(
                *(two.fork(who, source.id) for _ in range(4)),
                one.delete(who, source.id),
                return_exceptions=True,
            )
            forks = [each for each in results[:4] if isinstance(each, hitherto.Session)]
            for fork in forks:
                assert await told(one, who, fork.id) == [f"m{number}" for number in range(30)]
            assert all(type(each).__name__ in ("Session", "SessionNotFound") for each in results[:4])
        assert (await one.admin.check(repair=False)).problems == ()
