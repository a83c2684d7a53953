"""Rows about stores and files: migrations, backups, many writers, locks, other programs' files, damage."""

from __future__ import annotations

from tests.mutants import Change
from torture.storage import (
    backups,
    bit_rot,
    damaged_transcripts,
    foreign_appenders,
    migrations,
    misplaced_rows,
    older_programs,
    planted_faults,
    sqlite_files,
    writers,
)
from torture.trial.program import broken, changed, each, whole
from torture.trial.row import Row

R6 = Row(
    key="R6",
    promise="A store of any earlier version is migrated completely, even if the migration is killed",
    target="Each old schema to the newest, every step killed at every statement: row counts and content hash equal",
    how=(
        "Stores of every earlier schema, including the empty one, on SQLite and PostgreSQL, hold sessions, forks,"
        " compactions, facts and raw copies. They are not files that older programs wrote: today's first migration"
        " steps create them, and their rows are those of a store of today without the newer columns. The program"
        " that opens one is stopped before each statement in turn and killed: of the two oldest on the whole way to the"
        " newest schema, of every other in its first step. On PostgreSQL, at every fourth statement, the database server is killed too, with the transaction open. The store is opened again and"
        " examined: every table must have the same rows as before, and the same content as after a migration"
        " without a kill."
    ),
    run=whole(migrations.run_trial),
    control=broken(
        migrations.run_trial,
        "migration-recorded-outside-its-transaction-sqlite",
        "migration-recorded-outside-its-transaction-postgres",
    ),
    broken="a migration step and its record are committed separately",
)
R7 = Row(
    key="R7",
    promise="A backup of a store in use is complete, and takes the place of a store that was killed",
    target="100 backups under load: 0 bad, content equal when restored in place of a killed store",
    how=(
        "While processes append, `hitherto backup` copies the store again and again. `hitherto restore-backup` puts each"
        " copy in place of a store whose process was killed, with the log, the shared memory and the search index of that"
        " store beside it. What is there then is examined by the program's own check and compared byte for byte with the"
        " final content of the store; everything acknowledged before the backup must be there. This tests SQLite:"
        " PostgreSQL is backed up by its own `pg_dump`, which is not tested."
    ),
    run=whole(backups.run_trial),
    control=each(
        changed(
            backups.run_trial,
            Change(
                "stores/sqlite/replacement.py",
                'source.execute("VACUUM INTO ?", (str(part),))',
                "part.write_bytes(Path(source.filename).read_bytes())",
            ),
        ),
        changed(
            backups.run_trial,
            Change(
                "stores/sqlite/replacement.py",
                "        for suffix in SUFFIXES\n        if _renamed(",
                '        for suffix in ("",)\n        if _renamed(',
            ),
        ),
    ),
    broken="a plain copy of the file in use; then the replaced store's log stays beside the backup",
)
R10 = Row(
    key="R10",
    promise="Many processes can write to one SQLite store without a busy error",
    target="8 and 32 writers: 0 busy errors, 0 gaps, 0 places given twice; p99 below 100 ms with 8",
    how=(
        "So many processes append to one shared session and to one of their own, as fast as they can; then every"
        " acknowledged entry must be in the store, and the positions in each log are counted."
    ),
    run=whole(writers.run_trial),
    control=broken(writers.run_trial, "deferred-begin"),
    broken="transactions that start without the write lock",
)
R11 = Row(
    key="R11",
    promise="Only SQLite opens SQLite's files",
    target="0 stray opens in the whole test suite; 60 s of commands opening a store under load: integrity ok",
    how=(
        "Every Python process of the test suite, and every process that it starts, has an audit hook that notes"
        " who opens a database in use, its log or the log's index. A test that fails may open fewer files, and"
        " fails the row. Then two processes append while commands open and close the same store."
    ),
    run=whole(sqlite_files.run_trial),
    control=changed(
        sqlite_files.run_trial,
        Change(
            "stores/sqlite/commit_queue.py",
            '            self._db.execute("COMMIT")\n',
            '            self._db.execute("COMMIT")\n'
            '            for end in ("", "-wal", "-shm"):\n'
            '                open(self._db.filename + end, "rb").close()\n',
        ),
    ),
    broken="the program opens the files after each commit",
)
R12 = Row(
    key="R12",
    promise="Hitherto can write to a transcript while Claude Code writes to it",
    target="8 foreign appenders, ours, and kills: 0 acknowledged lines lost, 0 foreign bytes changed",
    how="Eight processes append to a transcript as Claude Code does, sometimes stopping in the middle of a line; two rename the "
    "session. All are killed, and others take over. Then every line that a process reported as written, and every torn "
    "piece, must be in the file.",
    run=whole(foreign_appenders.run_trial),
    control=changed(
        foreign_appenders.run_trial,
        Change(
            "claude/foreign_files.py",
            '    data = line if _ends_line(descriptor, size) else b"\\n" + line\n',
            "    data = line\n"
            "    if not _ends_line(descriptor, size):\n"
            "        tail = os.pread(descriptor, 65536, max(0, size - 65536))\n"
            '        os.ftruncate(descriptor, size - len(tail) + tail.rfind(b"\\n") + 1)\n',
        ),
    ),
    broken="a torn line is truncated before ours is written",
)
R13 = Row(
    key="R13",
    promise="Damage to a transcript costs only the damaged records",
    target="At least 1,000 files with 14 kinds of damage: every intact record read, damage told, files unchanged, other "
    "sessions unaffected",
    how=(
        "Transcripts and databases of all seven agents are damaged, each at a random message, beside intact ones."
        " One `hitherto sync` imports them; each session is compared with what was written, and every file with"
        " its original bytes."
    ),
    run=whole(damaged_transcripts.run_trial),
    control=changed(
        damaged_transcripts.run_trial,
        Change(
            "claude/lines.py",
            "        records += found\n",
            "        if harm:\n            break\n        records += found\n",
        ),
    ),
    broken="reading stops at the first damaged line",
)
R33 = Row(
    key="R33",
    promise="A transcript that its agent refuses can be mended, and no message is lost",
    target="At least ten kinds of faults in transcripts of Claude Code and of Codex, 100 files each: all mended, every whole record's"
    " words in the new session, no file changed",
    how=(
        "Conversations with tool calls get faults at random places: torn and spliced lines, NULs, bad UTF-8, a byte order mark,"
        " repeated records, records without a time or a parent, circles, two programs that write at the same time, calls without"
        " results and results without calls, records of 8 MiB, rollouts without their first line. Each is mended; the new session is"
        " examined again, and what it says is compared with every whole record of the old one."
    ),
    run=whole(planted_faults.run_trial),
    control=changed(
        planted_faults.run_trial,
        Change(
            "sources/mend/claude_records.py",
            "            content[at : at + 1] = _as_texts(block)\n",
            "            del content[at]\n",
        ),
    ),
    broken="a result without its call is left out",
)
R14 = Row(
    key="R14",
    promise="Data that the disk has altered is never returned as genuine",
    target="400 random bytes and 1,000 single bits changed, 400 right rows in wrong places: detected or harmless, never a crash"
    " loop, the rest still served (at most 20 % of stores or lists refused, one session for each byte at most not whole in the others)",
    how=(
        "Four bytes of a SQLite store with 40 sessions are changed at random places, 100 times; the server is"
        " started on it and asked for every session and for the list. A session must be served unchanged or"
        " answered with a typed error; `hitherto doctor` must report a session that lacks messages, is not found"
        " or is not in the list; a message, id or title that nobody wrote fails the row. A server may refuse to"
        " start, or to list, with the error that the store is damaged: if SQLite cannot read its first page, or"
        " the tables that all sessions share, nothing else can be read. Then, in copies of a store with eight owners, single"
        " bits flip anywhere, and pairs of rows of each table change places together with their checksums. Sessions,"
        " histories, forks, checkpoints and what they hold, leases, facts, tokens and raw copies of all owners are read: each must be"
        " what was written, or told as damaged. If something is not found, or rows have changed places, `doctor` must tell."
    ),
    run=whole(bit_rot.run_trial),
    control=each(
        broken(bit_rot.run_trial, "altered-entry-served", "altered-session-served"),
        broken(misplaced_rows.run_places, "altered-token-let-in"),
        broken(misplaced_rows.run_places, "altered-raw-copy-served"),
    ),
    broken="checksums of entries and sessions are not verified; then those of tokens; then those of raw copies",
)
R25 = Row(
    key="R25",
    promise="Programs of different versions can share a store, or the older one stops writing",
    target="0.1 and the program before each migration beside today's: everything acknowledged by either is readable; one that"
    " is too old acknowledges nothing after the migration; servers are replaced one after the other without a refusal",
    how=(
        "Each older program, taken from this project's history, serves a store on SQLite and on PostgreSQL under load."
        " Today's program starts on the same store, migrates it, and its clients write to the same sessions while those of"
        " the older server continue. An older program that may write must acknowledge everything and start again; any"
        " other must refuse every write from then on, and refuse to start. Today's program is the older one beside copies"
        " of itself that have one more migration: one that only adds, one that shuts older programs out. Finally two"
        " servers are replaced one after the other while clients write, and an older one is started again in between."
    ),
    run=whole(older_programs.run_trial),
    control=each(
        broken(older_programs.run_trial, "too-old-to-write-sqlite", "too-old-to-write-postgres"),
        changed(
            older_programs.run_beside_unchecked,
            Change(
                "stores/sqlite/sql/0009_oldest_writer.sql",
                "ALTER TABLE session RENAME COLUMN change_kind TO kind_of_change;\n",
                "",
            ),
            Change("stores/sqlite/write_tx.py", "kind_of_change", "change_kind"),
            Change("stores/sqlite/read_tx.py", "kind_of_change", "change_kind"),
        ),
    ),
    broken="programs do not check whether they may still write; the column keeps the name that 0.1 writes by",
    needs=(older_programs.HISTORY,),
)

KEPT = (R6, R7, R25)
SURVIVED = (R10, R11, R12, R13, R33, R14)
