"""Load held: durable appends, an hour of use, clients that never read, stores that agree, and growth."""

from __future__ import annotations

from collections.abc import Mapping

from tests.mutants import Change
from torture.appending import Appended, appended
from torture.breaking import broken_program
from torture.row import Outcome, Row, Setting
from torture.soaking import Held, Soak, soaked

CLIENTS, CORES, GROUP = 8, 2, 20
SINGLE, GROUPED, P99 = 1_500, 8_000, 0.050
SLOW = Change(
    "stores/sqlite/writing.py",
    "            for row in rows\n        ]\n        try:",
    "            for row in rows\n"
    '            if hashlib.pbkdf2_hmac("sha256", row.payload, b"salt", 5_000)\n        ]\n        try:',
)


def _fast(found: Appended, rate: int) -> bool:
    return found.rate >= rate and found.p99 < P99


def _cheap(found: Appended, rate: int) -> bool:
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


def _told(found: Appended) -> str:
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
    promise="durable appends through the server keep up",
    target="8 clients, 2 cores, synchronous=FULL: >= 1,500/s one by one, >= 8,000 messages/s grouped, p99 < 50 ms",
    how=(
        "`recollect serve` on SQLite; eight WebSocket clients in another process, each with a session of its own, send"
        " messages of 1 KB: 80,000 one by one, then 400,000 in requests of 20, each request when the one before is answered. The"
        " time counts until the search index has them too. Afterwards every message is there. The short form compares the"
        " server's CPU time for a message with what two cores have at the target's rate."
    ),
    run=append,
    control=slow_append,
    broken="it derives a key from each message, in 5,000 rounds (a twentieth of the messages)",
)

MEGABYTE = 1 << 20
GROWTH, LOG_BYTES = 0.05, 64 * MEGABYTE
PACE = 50

LEAKS = (
    Change("gateway/subscriptions.py", 'EVENT = "session.event"', 'EVENT = "session.event"\nKEPT: list = []'),
    Change(
        "gateway/subscriptions.py",
        "            self._metrics.events.add(",
        "            KEPT.append(str(told))\n            self._metrics.events.add(",
    ),
    Change(
        "gateway/subscriptions.py",
        "        self._all: dict[str, _Subscription] = {}",
        "        self._all: dict[str, _Subscription] = {}\n        KEPT.append(open(__file__))",
    ),
    Change("stores/sqlite/connection.py", "wal_autocheckpoint = 4000", "wal_autocheckpoint = 0"),
    Change("stores/sqlite/writer.py", "WAL_PAGES = 4_000", "WAL_PAGES = 1 << 60"),
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


def _figure(held: Held) -> str:
    return (
        f"{held.appended:,} appends in {held.seconds / 60:.0f} minutes, {held.told:,} events told, {held.visits:,} clients"
        f" that came and went: RSS {held.growth:+.1%} (from {held.before.memory / 1e6:.0f} MB),"
        f" descriptors {held.after.descriptors - held.before.descriptors:+d},"
        f" WAL at most {held.most_log / MEGABYTE:.0f} MB, {held.errors:,} errors"
    )


def _kept(held: Held) -> tuple[bool, bool, bool, bool]:
    """Whether each bound is kept: memory, descriptors, log, errors."""
    return (
        held.growth < GROWTH,
        held.after.descriptors <= held.before.descriptors,
        held.most_log < LOG_BYTES,
        held.errors == 0,
    )


def soak(setting: Setting) -> Outcome:
    """An hour at the pace."""
    held = soaked(_soak(setting, 60 * 60 * PACE), setting.folder, setting.say)
    return Outcome(
        met=all(_kept(held)),
        figure=_figure(held),
        counts={"acknowledged": held.appended, "lost": held.errors},
    )


def leaking_soak(setting: Setting) -> Outcome:
    """Five minutes of a program that leaks everywhere: each leak must be seen (in the short form the log is too short)."""
    changed = broken_program(setting.folder / "broken", *LEAKS)
    held = soaked(_soak(setting, 5 * 60 * PACE), setting.folder, setting.say, changed)
    memory, descriptors, log, _ = _kept(held)
    return Outcome(met=memory or descriptors or (log and not setting.short), figure=_figure(held))


R17 = Row(
    key="R17",
    promise="an hour of steady use leaves nothing behind",
    target="1 h, 200 sockets, 50 appends/s: RSS +< 5 %, descriptors +0, WAL < 64 MB, 0 errors",
    how=(
        "`recollect serve` on SQLite with 150,000 messages of 1 KB in 50 sessions, so that its caches are full. 198 sockets"
        " follow a session each and check that the numbered messages come without a gap; one writes 50 messages a second."
        " Each second a follower leaves and comes back with its cursor, and a client comes, lists, reads, searches, subscribes"
        " and goes. Five minutes of that warm up; then memory (the median of the last minute, of the warm-up that of five seconds), descriptors and the longest WAL"
        " are compared with those after the hour. A refused request, a gap, a lost socket and a line in the server's log are"
        " errors."
    ),
    run=soak,
    control=leaking_soak,
    broken="it keeps every event and a file for each socket and never checkpoints (five minutes)",
)
ROWS = (R16, R17)
