"""Faults of the machine: the power fails, the disk is full or fails, memory runs out, the clock jumps."""

from __future__ import annotations

from tests.mutants import Change
from torture.load import clock_jumps, little_memory
from torture.storage import full_disk, io_errors, power_cuts
from torture.trial.needs import FALSE_CLOCK, FAULTY_CALLS, LOOP_DISKS, ROOT
from torture.trial.program import broken, changed, each, whole
from torture.trial.row import Row

POWER_CUTS = Row(
    key="R2",
    promise="No acknowledged message is lost when the operating system crashes or the power fails",
    target="0 lost in 500 cuts",
    how=(
        "Four clients append to `hitherto serve` through WebSockets. Its store is on ext4, on a loop device whose"
        " file is in memory. After a random number of acknowledgements the server is stopped and that file is"
        " copied at once. The copy is mounted, which replays its journal, and opened: every message acknowledged"
        " before the cut must be there, in order, search must find the last message of each session, the store"
        " must pass its check, and appending must work again. This models a crash of the system, not a disk that"
        " lies about what it has written."
    ),
    run=whole(power_cuts.run_trial),
    control=broken(power_cuts.run_trial, "synchronous-normal"),
    broken="`synchronous=NORMAL`",
    needs=(ROOT, LOOP_DISKS),
)
FULL_DISK = Row(
    key="R8",
    promise="A full disk loses nothing and is reported, and service resumes without a restart",
    target=(
        "100 fills, every client refused in each: 0 acknowledged lost, a typed error, resumes without restart, 0 torn lines"
        " of ours"
    ),
    how=(
        "The store of `hitherto serve` is on an in-memory disk of 64 MB, plus 4 MB for each fill (464 MB in all, since stored"
        " messages stay). Again and again a file fills the disk except for a random rest of at most 2 MB. Two clients append"
        " through WebSockets until each was refused five times, while `hitherto append` runs and messages are read; then the"
        " file is removed, and the very next append of each must succeed. A refusal other than `store_full` counts as a"
        " failure, and a fill in which a client was not refused fails the row. Then the same with titles, tags and forks of a"
        " Claude Code transcript, each repeated until it is refused. A full disk under PostgreSQL is not tested."
    ),
    run=whole(full_disk.run_trial),
    control=broken(full_disk.run_trial, "failed-commit-acknowledged", "transcript-line-begun-without-room"),
    broken="a failed COMMIT is acknowledged, and no space is reserved for lines",
    needs=(ROOT,),
)
IO_ERRORS = Row(
    key="R9",
    promise="Disk errors lose and damage nothing",
    target="at least 5,000 injected: 0 acknowledged lost, 0 corrupt",
    how=(
        "`hitherto serve` runs under `fiu-run`, which makes 1 to 5 in a hundred of the calls fail, at random, by which SQLite"
        " writes (also partially), syncs, reads and truncates its files. Two clients append through WebSockets; each refusal"
        " of the first counts as one fault, though it may have several causes. Refused messages must not be in the store,"
        " acknowledged ones must, a refusal must be a store error, and when the disk works again the next append succeeds."
    ),
    run=whole(io_errors.run_trial),
    control=broken(io_errors.run_trial, "failed-commit-acknowledged"),
    broken="a failed COMMIT is acknowledged",
    needs=(FAULTY_CALLS,),
)
LITTLE_MEMORY = Row(
    key="R9b",
    promise="When memory runs out, no acknowledged message is lost and the next start serves",
    target="50 servers: 0 acknowledged lost, an error with a code or an end of the process, the next start serves",
    how=(
        "A running `hitherto serve` may take only 1 to 64 MB more address space than it has. Three clients append messages of"
        " up to 4 MB, search, read and import through WebSockets until they finish or are cut off. Then the limit is lifted:"
        " a server that still runs must serve again, and so must the next one. A process may end by a signal: msgspec does"
        " not check every allocation. After an error that is not a store error, as after a lost connection, a message may or"
        " may not be stored."
    ),
    run=whole(little_memory.run_trial),
    control=broken(little_memory.run_trial, "failure-answered-as-done"),
    broken="a failed request is answered as successful",
    in_tests=False,  # whether few servers end by a signal or answer with errors is chance, and so is its control
    short_forms=(
        "tests/gateway/methods/test_input.py::test_a_fault_of_ours_is_told_without_its_words",
        "tests/stores/test_sqlite.py::test_an_append_whose_commit_fails_is_not_acknowledged",
    ),
)
CLOCK_JUMPS = Row(
    key="R15",
    promise="A clock jump changes no order, ends no turn and expires nothing",
    target="jumps of 5, 8 and 30 days ahead and back, and beyond 2038: order unchanged, no key done twice, no storm of expiries",
    how=(
        "`faketime` gives the server (with a scripted engine) a clock that is changed while it runs; elapsed time"
        " is not affected. Before and after each jump, messages are appended through a WebSocket with idempotency"
        " keys, and requests of every earlier time are repeated, also where the clock says that their keys are older than"
        " the seven days that keys are kept; servers that are started with a wrong clock are asked the same. A turn runs"
        " across each jump; all with the same token. The history must be in the order of the acknowledgements. Then the retention job (which deletes what is"
        " older than 90 days, here without its pauses) runs across the same jumps over sessions of today. The"
        " control breaks the job, the order and the keys separately; turns have no control of their own."
    ),
    run=whole(clock_jumps.run_trial),
    control=each(
        # Two checks stand between a wrong clock and the sessions: either of them is enough.
        changed(
            clock_jumps.run_trial,
            Change(
                "gateway/server/schedule.py",
                "    return lambda: min(clock(), began + int((passed() - at) * 1_000))\n",
                "    return clock\n",
            ),
            Change(
                "gateway/server/schedule.py",
                "        newest = await self._newest()\n",
                "        newest = None\n",
            ),
        ),
        changed(
            clock_jumps.run_trial,
            Change(
                "stores/sqlite/read_tx.py",
                "        return found\n\n    async def totals(",
                "        return sorted(found, key=lambda each: __import__('json').loads(each)['at'])\n\n    async def totals(",
            ),
        ),
        changed(
            clock_jumps.run_trial,
            Change(
                "service/idempotency.py",
                "        if note is None:\n            return None\n        if note.digest",
                "        if note is None or self._now - note.at >= 7 * 86_400_000:\n            return None\n        if note.digest",
            ),
        ),
    ),
    broken="the retention policy trusts the clock; then messages are read in order of time; then keys expire by the clock",
    needs=(FALSE_CLOCK,),
    in_tests=False,
    short_forms=("tests/gateway/server/test_schedule.py::test_a_clock_that_jumps_ahead_makes_nothing_old",),
)

SURVIVED = (FULL_DISK, IO_ERRORS, LITTLE_MEMORY)
