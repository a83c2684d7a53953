"""Rows about load: durable appends, an hour of use, clients that never read."""

from __future__ import annotations

from collections.abc import Mapping

from tests.mutants import Change
from torture.load.append import AppendResult, appended
from torture.load.silent_clients import Silence, measure_silence
from torture.load.soak import Soak, SoakResult, run_soak
from torture.trial.broken_copy import broken_program
from torture.trial.row import Outcome, Row, Setting

CLIENTS, CORES, GROUP = 8, 2, 20
SINGLE, GROUPED, P99 = 1_500, 8_000, 0.050
SLOW = Change(
    "stores/sqlite/write_tx.py",
    "            place = seed + seq\n",
    '            place = seed + seq\n            hashlib.pbkdf2_hmac("sha256", row.payload, b"salt", 2_000)\n',
)


def _fast(found: AppendResult, rate: int) -> bool:
    return found.rate >= rate and found.p99 < P99


def _cheap(found: AppendResult, rate: int) -> bool:
    """Whether the cores have the time for that rate: the short form judges no wall clock."""
    return found.cost < CORES / rate


def _appended(setting: Setting, changed: Mapping[str, str], rounds: int) -> Outcome:
    plans = (
        (rounds, setting.of(short=40, full=500), 1),
        (rounds, setting.of(short=10, full=125), GROUP),
    )
    single, grouped = appended(setting.folder, changed, CLIENTS, plans)
    enough = _cheap if setting.short else _fast
    lost = sum(each.messages - each.kept for each in (single, grouped))
    return Outcome(
        met=lost == 0 and enough(single, SINGLE) and enough(grouped, GROUPED),
        figure=(
            f"{_told(single)} one by one; {_told(grouped)} in groups of {GROUP};"
            f" {lost} of {single.messages + grouped.messages:,} lost"
        ),
        counts={"acknowledged": single.messages + grouped.messages, "lost": lost},
    )


def _told(found: AppendResult) -> str:
    return (
        f"{found.rate:,.0f} messages/s (p99 {found.p99 * 1e3:.0f} ms, {found.cost * 1e6:.0f} µs of CPU each)"
    )


def append(setting: Setting) -> Outcome:
    """Single and grouped appends."""
    return _appended(setting, {}, setting.of(short=1, full=20))


def slow_append(setting: Setting) -> Outcome:
    """The same, briefly, of a program that does much more than it should."""
    return _appended(setting, broken_program(setting.folder / "broken", SLOW), 1)


R16 = Row(
    key="R16",
    promise="Durable appends through the server reach the target rate",
    target="8 clients, 2 cores, synchronous=FULL: >= 1,500/s one by one, >= 8,000 messages/s grouped, p99 < 50 ms",
    how=(
        "`hitherto serve` on SQLite; eight WebSocket clients in another process, each with its own session, send"
        " messages of 1 KB: 80,000 one by one, then 400,000 in requests of 20, each request after the answer to"
        " the one before. The time includes updating the search index. Afterwards the sessions must count every"
        " message. The short form compares the server's CPU time for a message with what two cores have at the"
        " target rate."
    ),
    run=append,
    control=slow_append,
    broken="it derives a key from each message in 2,000 rounds (with a twentieth of the messages)",
)

MEGABYTE = 1 << 20
GROWTH, LOG_BYTES = 0.05, 64 * MEGABYTE
PACE = 50

LEAKS = (
    Change(
        "gateway/events/subscriptions.py",
        'EVENT = "session.event"',
        'EVENT = "session.event"\nKEPT: list = []',
    ),
    Change(
        "gateway/events/subscriptions.py",
        "            self._metrics.events.add(",
        "            KEPT.append(str(event))\n            self._metrics.events.add(",
    ),
    Change(
        "gateway/events/subscriptions.py",
        "        self._all: dict[str, _Subscription] = {}",
        "        self._all: dict[str, _Subscription] = {}\n        KEPT.append(open(__file__))",
    ),
    Change("stores/sqlite/connection.py", "wal_autocheckpoint = 4000", "wal_autocheckpoint = 0"),
    Change("stores/sqlite/commit_queue.py", "WAL_PAGES = 4_000", "WAL_PAGES = 1 << 60"),
)


def _soak(setting: Setting, appends: int) -> Soak:
    return Soak(
        sockets=setting.of(short=20, full=200),
        sessions=setting.of(short=2, full=50),
        filled=setting.of(short=500, full=150_000),
        warm=setting.of(short=200, full=5 * 60 * PACE),
        appends=setting.of(short=600, full=appends),
        per_second=setting.of(short=0, full=PACE),
    )


def _figure(held: SoakResult) -> str:
    return (
        f"{held.appended:,} appends in {held.seconds / 60:.0f} minutes, {held.told:,} events told, {held.visits:,} clients"
        f" that came and went: RSS {held.growth:+.1%} (from {held.before.memory / 1e6:.0f} MB),"
        f" descriptors {held.after.descriptors - held.before.descriptors:+d},"
        f" WAL at most {held.most_log / MEGABYTE:.0f} MB, {held.errors:,} errors"
    )


def _kept(held: SoakResult) -> tuple[bool, bool, bool, bool]:
    """Whether each bound is kept: memory, descriptors, log, errors."""
    return (
        held.growth < GROWTH,
        held.after.descriptors <= held.before.descriptors,
        held.most_log < LOG_BYTES,
        held.errors == 0,
    )


def soak(setting: Setting) -> Outcome:
    """An hour at the pace."""
    held = run_soak(_soak(setting, 60 * 60 * PACE), setting.folder, setting.say)
    return Outcome(
        met=all(_kept(held)),
        figure=_figure(held),
        counts={"acknowledged": held.appended, "lost": held.errors},
    )


def leaking_soak(setting: Setting) -> Outcome:
    """Five minutes of a program that leaks everywhere: each leak must be seen (in the short form the log is too short)."""
    changed = broken_program(setting.folder / "broken", *LEAKS)
    held = run_soak(_soak(setting, 5 * 60 * PACE), setting.folder, setting.say, changed)
    memory, descriptors, log, _ = _kept(held)
    return Outcome(met=memory or descriptors or (log and not setting.short), figure=_figure(held))


R17 = Row(
    key="R17",
    promise="An hour of steady use leaks no memory, files or disk space",
    target="1 h, 200 sockets, 50 appends/s: RSS +< 5 %, descriptors +0, WAL < 64 MB, 0 errors",
    how=(
        "`hitherto serve` on SQLite with 150,000 messages of 1 KB in 50 sessions, so that its caches are full."
        " 198 sockets follow one session each and check that the numbered messages arrive without a gap; one"
        " writes 50 messages a second. Each second a follower disconnects and reconnects with its cursor, and a"
        " client connects, lists, reads, searches, subscribes and disconnects. Five minutes of this warm the"
        " server up; then memory (the median of the last minute, for the warm-up of five seconds),"
        " descriptors and the longest WAL are compared with those after the hour. A refused request, a gap, a lost"
        " socket or a line in the server's log is an error."
    ),
    run=soak,
    control=leaking_soak,
    broken="it keeps every event and a file for each socket and never checkpoints (five minutes)",
)

EACH_BYTES, SLOWER = 1 * MEGABYTE, 2
IMPATIENT = Change("gateway/transport/limits.py", "stall_seconds: float = 20.0", "stall_seconds: float = 1.0")
UNBOUNDED = (
    Change(
        "gateway/transport/protocols.py",
        "        await self.writable.wait()\n        if self.disconnected",
        "        if self.disconnected",
    ),
    Change(
        "gateway/transport/protocols.py",
        '        self.transport.write(b"".join(self.conn.data_to_send()))\n        await self.writable.wait()\n',
        '        self.transport.write(b"".join(self.conn.data_to_send()))\n',
    ),
    Change(
        "gateway/transport/protocols.py",
        "        self._left = self._transport.get_write_buffer_size()\n",
        "        return\n",
    ),
)


def _silence(setting: Setting, *changes: Change) -> Outcome:
    """In the short form the program waits a second for a silent client, not twenty."""
    changes = (*changes, IMPATIENT) if setting.short else changes
    changed = broken_program(setting.folder / "changed", *changes) if changes else {}
    silence = Silence(
        silent=setting.of(short=20, full=100),
        messages=setting.of(short=20, full=200),
        rounds=setting.of(short=2, full=20),
        too_much=EACH_BYTES * 3 // 2,
    )
    found = measure_silence(setting.folder, silence, changed)
    slower = found.beside / found.alone
    return Outcome(
        met=found.each < EACH_BYTES
        and found.closed == found.resumed == silence.silent
        and found.gaps == 0
        and (setting.short or slower < SLOWER),
        figure=(
            f"{found.each / 1e3:,.0f} KB for each of {silence.silent}; the others' p99 {slower:.2f} times as long"
            f" ({found.beside * 1e3:.1f} ms, before {found.alone * 1e3:.1f}); {found.closed} closed,"
            f" {found.resumed} went on to the last of {found.messages:,} messages, {found.gaps} gaps"
        ),
        counts={"faults": silence.silent, "lost": found.gaps},
    )


def silent(setting: Setting) -> Outcome:
    """The program as it is."""
    return _silence(setting)


def silent_unbounded(setting: Setting) -> Outcome:
    """A program that keeps for a client whatever it does not read."""
    return _silence(setting, *UNBOUNDED)


R18 = Row(
    key="R18",
    promise="Clients that never read do not harm others, and can resume",
    target="100 of them: RSS < +1 MB each, others' p99 < 2 x, closed with a cursor that resumes with 0 gaps",
    how=(
        "`hitherto serve` on SQLite; 100 WebSocket clients follow a session and read nothing, while 2 MB are"
        " written to it in messages of 20 KB, and then messages of 1 KB until the server has closed all of them."
        " Four other clients read: the time from sending a message until each has it is measured before and"
        " meanwhile. Then each silent client reads what was in flight and reconnects with its last cursor: the"
        " numbered messages must continue where they stopped and reach the last one. In the short form the server"
        " waits one second for a silent client, not twenty, and times are not judged."
    ),
    run=silent,
    control=silent_unbounded,
    broken="the server buffers unread events without a limit",
)
ROWS = (R16, R17, R18)
