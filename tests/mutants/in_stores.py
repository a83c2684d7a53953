"""Breakages of the stores."""

from __future__ import annotations

from tests.mutants.definitions import Change, Mutant, mutant

MUTANTS = (
    mutant(
        "read-mark-unchecked-sqlite",
        "stores/sqlite/rows.py",
        "        and (read_crc is None or read_crc == read_checksum(owner, row[0], row[READ_AT]))\n",
        "",
        "tests/stores/test_checksums.py::"
        "test_what_was_altered_or_is_in_a_wrong_place_is_noticed[sqlite-another time of reading]",
    ),
    mutant(
        "read-mark-unchecked-postgres",
        "stores/postgres/rows.py",
        "return is_read_whole(*place, record.session.read_at, row[_READ_CRC])",
        "return True",
        "tests/stores/test_checksums.py::"
        "test_what_was_altered_or_is_in_a_wrong_place_is_noticed[postgres-a time of reading of another owner]",
    ),
    mutant(
        "lanes-in-any-order",
        "stores/postgres/pending_rows.py",
        "in sorted(held.values(), key=lambda each: _place(each.record)):",
        "in held.values():",
        "tests/stores/test_postgres.py::test_a_transaction_takes_its_lanes_in_their_order",
    ),
    mutant(
        "remembered-session-believed",
        "stores/postgres/write_tx.py",
        "SELECT 1 / count(*) FROM (",
        "SELECT 1 / greatest(count(*), 1) FROM (",
        "tests/stores/test_postgres.py::"
        "test_what_others_did_to_a_session_is_heeded_by_who_wrote_it_last[rename-2]",
    ),
    mutant(
        "remembered-session-believed-by-one-statement",
        "stores/postgres/sql/0017_append.sql",
        "IF NOT FOUND THEN",
        "IF false THEN",
        "tests/stores/test_postgres.py::"
        "test_what_others_did_to_a_session_is_heeded_by_who_wrote_it_last[rename-1]",
    ),
    mutant(
        "one-statement-for-a-tagged-session",
        "stores/postgres/sql/0017_append.sql",
        "IF is_tagged THEN",
        "IF false THEN",
        "tests/stores/test_postgres_one_trip.py::test_one_statement_leaves_what_a_transaction_leaves",
    ),
    mutant(
        "lease-judged-by-another-clock",
        "stores/postgres/sql/0017_append.sql",
        "IF assumed_now IS NOT NULL AND",
        "IF false AND",
        "tests/stores/test_postgres_one_trip.py::"
        "test_a_lease_is_judged_by_the_server_s_clock_in_one_statement",
    ),
    mutant(
        "one-statement-past-the-inbox",
        "stores/postgres/sql/0017_append.sql",
        "IF assumes_no_inbox AND",
        "IF false AND",
        "tests/stores/test_postgres_one_trip.py::test_what_waits_in_an_inbox_comes_first",
    ),
    mutant(
        "refused-by-what-is-remembered",
        "stores/postgres/store.py",
        "                if writer.assumed:\n                    raise NotAsLeft from error\n",
        "",
        "tests/stores/test_postgres.py::test_a_refusal_is_not_due_to_what_was_remembered[a transaction]",
    ),
    mutant(
        "waiter-woken-by-what-was-heard-only",
        "stores/postgres/notify.py",
        "                if sleeper.seen != newest:\n",
        "                if False:\n",
        "tests/stores/test_postgres.py::"
        "test_who_missed_a_notice_is_woken_though_another_who_waits_has_seen_the_change",
    ),
    mutant(
        "new-file-busy-is-given-up",
        "stores/sqlite/connection.py",
        "            if not go_on(attempt):\n                raise\n",
        "            raise\n",
        "tests/stores/test_sqlite.py::"
        "test_who_is_refused_while_another_makes_the_log_of_a_new_file_tries_again",
    ),
    mutant(
        "searches-wait-with-a-connection",
        "stores/postgres/store.py",
        "if not self._searches.is_free(owner):",
        "if False:",
        "tests/stores/test_postgres_search.py::test_searches_leave_connections_to_others[1]",
    ),
    mutant(
        "search-without-limit",
        "stores/postgres/transactions.py",
        "        await self.queue(LIMIT, ",
        "        _ = (LIMIT, ",
        "tests/stores/test_postgres_search.py::test_the_limit_of_a_search_is_that_of_no_later_transaction",
    ),
    mutant(
        "too-old-to-write-sqlite",
        "stores/sqlite/commit_queue.py",
        "            self._check(self._db)\n",
        "",
        "tests/stores/test_versions.py::"
        "test_a_program_that_is_too_old_stops_writing_at_once_and_says_what_to_do[sqlite]",
    ),
    mutant(
        "too-old-to-write-postgres",
        "stores/postgres/transactions.py",
        "return checked if begin == WRITE else work",
        "return work",
        "tests/stores/test_versions.py::"
        "test_a_program_that_is_too_old_stops_writing_at_once_and_says_what_to_do[postgres]",
    ),
    mutant(
        "old-writers-not-shut-out",
        "stores/sqlite/sql/0009_oldest_writer.sql",
        "ALTER TABLE session RENAME COLUMN change_kind TO kind_of_change;\n",
        "ALTER TABLE session ADD COLUMN kind_of_change TEXT;\n",
        "tests/stores/test_versions.py::test_what_a_program_of_0_1_writes_and_collects_by_fails[sqlite]",
    ),
    mutant(
        "unfinished-write-left-open",
        "stores/sqlite/commit_queue.py",
        "        undo_unfinished(self._db)\n",
        "",
        "tests/stores/test_sqlite.py::test_a_write_that_could_not_even_be_undone_does_not_block_the_next",
    ),
    mutant(
        "unfinished-read-left-open",
        "stores/sqlite/store.py",
        "            undo_unfinished(db)\n",
        "",
        "tests/stores/test_sqlite.py::test_a_read_that_could_not_be_ended_does_not_block_the_next",
    ),
    mutant(
        "folder-of-a-backup-not-synced",
        "stores/sqlite/replacement.py",
        "sync_folder(target.parent)",
        "pass",
        "tests/stores/test_sqlite.py::test_a_backup_is_durable_under_its_name",
    ),
    mutant(
        "no-line-for-a-session",
        "stores/postgres/store.py",
        "            await stand_in_line(self._lines, about)\n",
        "            about = None\n",
        "tests/service/history/test_order.py::"
        "test_messages_of_tasks_that_run_side_by_side_are_stored_as_the_tasks_were_begun[postgres]",
    ),
    mutant(
        "stray-cancel-is-told",
        "stores/postgres/transactions.py",
        " or _is_cancelled_by_others(error, time.monotonic() - began)",
        "",
        "tests/stores/test_postgres_cancel.py::test_a_cancellation_that_nobody_here_asked_for_is_tried_again",
    ),
    Mutant(
        "list-without-owner-sqlite",
        (
            Change(
                "stores/sqlite/read_tx.py",
                "WHERE s.owner = :owner AND %s s.archived = :archived",
                "WHERE s.owner IN (SELECT num FROM owner) AND %s s.archived = :archived",
            ),
            Change(
                "stores/sqlite/read_tx.py",
                "WHERE s.owner = :owner AND s.hot = 1",
                "WHERE s.owner IN (SELECT num FROM owner) AND s.hot = 1",
            ),
            Change(
                "stores/sqlite/read_tx.py",
                "WHERE s.num = j.value AND s.owner = ?\n",
                "WHERE s.num = j.value AND ? >= 0\n",
            ),
            # A session's checksum has its owner in it.
            Change("stores/sqlite/rows.py", "(crc is None or crc == crc_of", "(True or crc_of"),
            Change(
                "stores/sqlite/rows.py",
                "place_crc is None or place_crc == session_place",
                "True or session_place",
            ),
        ),
        "tests/service/test_isolation.py::test_an_owner_s_name_is_never_a_pattern[sqlite-same connection]",
    ),
    mutant(
        "list-without-owner-postgres",
        "stores/postgres/list_query.py",
        "WHERE s.owner = %(owner)s AND {{archived}} AND {{leader}} AND {{bound}}",
        "WHERE s.owner <> '' AND {{archived}} AND {{leader}} AND {{bound}}",
        "tests/service/test_isolation.py::test_an_owner_s_name_is_never_a_pattern[postgres-second connection]",
    ),
    mutant(
        "beginning-of-one-word-only",
        "stores/sqlite/documents/by_time.py",
        "while len(found) < most and",
        "while not found and",
        "tests/service/search/test_sessions.py::test_a_beginning_finds_few_words_and_very_many_and_what_is_erased_no_more[sqlite]",
    ),
    Mutant(
        "search-without-owner-sqlite",
        (
            Change(
                "stores/sqlite/documents/by_time.py",
                """    own = f"{document.owner}{SIGN}\"""",
                """    own = f"1{SIGN}\"""",
            ),
            Change(
                "stores/sqlite/documents/by_time.py",
                """    phrase = " ".join(f"{owner}{SIGN}{token}" for token in term.tokens)""",
                """    phrase = " ".join(f"1{SIGN}{token}" for token in term.tokens)""",
            ),
            Change(
                "stores/sqlite/read_tx.py",
                "AND e.owner = :owner\nUNION ALL",
                "AND e.owner <> -:owner\nUNION ALL",
            ),
        ),
        "tests/service/test_isolation.py::test_a_search_of_the_store_finds_documents_of_one_owner[sqlite]",
    ),
    Mutant(
        "search-without-owner-postgres",
        (
            Change(
                "stores/postgres/search.py",
                '_BELOW = "owner = %(owner)s AND',
                '_BELOW = "owner <> %(owner)s || 1::text AND',
            ),
            Change(
                "stores/postgres/search.py",
                'digest = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).digest()',
                'digest = hashlib.sha256(b"everyone").digest()',
            ),
        ),
        "tests/service/test_isolation.py::test_a_search_of_the_store_finds_documents_of_one_owner[postgres]",
    ),
    mutant(
        "fork-without-owner-postgres",
        "stores/postgres/write_tx.py",
        'LOCKED_BY_ID = f"{BY_ID} FOR UPDATE"',
        "LOCKED_BY_ID = BY_ID.replace('owner = %s', \"%s <> ''\") + ' FOR UPDATE'",
        "tests/service/test_isolation.py::test_a_foreign_session_is_never_forked[postgres-second connection]",
    ),
    mutant(
        "fork-without-owner-sqlite",
        "stores/sqlite/read_tx.py",
        'SESSION = f"SELECT {COLUMNS} FROM session WHERE owner = ? AND id = ?"',
        'SESSION = f"SELECT {COLUMNS} FROM session WHERE ? >= 0 AND id = ?"',
        "tests/service/test_isolation.py::test_a_foreign_session_is_never_forked[sqlite-same connection]",
    ),
    mutant(
        "foreign-unlike-missing",
        "stores/sqlite/read_tx.py",
        "        return record_of(owner, rows[0]) if rows else None\n",
        "        if not rows and fetch(self._db, 'SELECT 1 FROM session WHERE id = ?', (value,)):\n"
        "            raise StoreDamaged('not yours')\n"
        "        return record_of(owner, rows[0]) if rows else None\n",
        "tests/service/test_isolation.py::test_foreign_is_answered_exactly_like_missing[sqlite-same connection-valid]",
    ),
    mutant(
        "altered-entry-served",
        "stores/sqlite/rows.py",
        "return bool(place_crc == crc32(payload) + seed)",
        "return True",
        "tests/stores/test_sqlite.py::test_what_the_disk_has_altered_is_never_taken_for_what_was_written",
    ),
    mutant(
        "altered-session-served",
        "stores/sqlite/rows.py",
        "(crc is None or crc == crc_of",
        "(True or crc_of",
        "tests/stores/test_sqlite.py::test_what_the_disk_has_altered_is_never_taken_for_what_was_written",
    ),
    mutant(
        "place-counted-wrongly",
        "values/checksums.py",
        "return range(start, start + last - first + 1)",
        "return [start] * (last - first + 1)",
        "tests/stores/test_checksums.py::test_a_store_that_is_whole_is_read_without_a_word[sqlite]",
    ),
    mutant(
        "altered-span-followed",
        "stores/sqlite/read_tx.py",
        "if crc is not None and crc != checksum(owner, num, name, order, size, *span):",
        "if False:",
        "tests/stores/test_checksums.py::test_what_was_altered_or_is_in_a_wrong_place_is_noticed[sqlite-a span of another session's log]",
    ),
    Mutant(
        "span-into-another-owners-log",
        (
            Change(
                "stores/sqlite/read_tx.py",
                "FROM entry WHERE pos BETWEEN ? AND ? AND owner = ? ORDER BY pos",
                "FROM entry WHERE pos BETWEEN ? AND ? AND ? >= 0 ORDER BY pos",
            ),
        ),
        "tests/stores/test_checksums.py::test_another_owners_messages_are_not_read_even_where_nothing_has_a_checksum[sqlite]",
    ),
    mutant(
        "altered-token-let-in",
        "stores/sqlite/tokens.py",
        "    if not is_token_whole(row):\n        raise",
        "    if False:\n        raise",
        "tests/stores/test_checksums.py::test_what_was_altered_or_is_in_a_wrong_place_is_noticed[sqlite-more scopes of a token]",
    ),
    mutant(
        "altered-raw-copy-served",
        "stores/sqlite/read_tx.py",
        "if not isinstance(data, bytes) or hashlib.sha256(data).digest() != digest:",
        "if not isinstance(data, bytes):",
        "tests/stores/test_checksums.py::test_what_was_altered_or_is_in_a_wrong_place_is_noticed"
        "[sqlite-a raw copy of which a bit has flipped]",
    ),
    mutant(
        "missing-entries-left-out-postgres",
        "stores/postgres/read_tx.py",
        "if missing := sum(stretch.size for stretch in stretches) - len(rows):",
        "stretches = [stretch for stretch in stretches if len(rows) == stretch.size]\n        if missing := 0:",
        "tests/stores/test_checksums.py::test_what_was_altered_or_is_in_a_wrong_place_is_noticed[postgres-an entry that is gone]",
    ),
    mutant(
        "altered-session-served-postgres",
        "stores/postgres/rows.py",
        "return bool(is_of_older_program)",
        "return True",
        "tests/stores/test_checksums.py::test_what_was_altered_or_is_in_a_wrong_place_is_noticed[postgres-another parent]",
    ),
    mutant(
        "mended-by-what-is-left",
        "stores/sqlite/check.py",
        "readable = not problems",
        "readable = True",
        "tests/stores/test_sqlite.py::test_doctor_mends_nothing_by_what_is_left_of_a_damaged_file",
    ),
    mutant(
        "collected-while-damaged",
        "stores/sqlite/write_tx.py",
        " or fetch(self._db, UNSOUND)[0][0]",
        "",
        "tests/stores/test_repair.py::test_nothing_is_collected_while_anything_is_wrong[sqlite]",
    ),
    mutant(
        "collected-by-the-index",
        "stores/sqlite/write_tx.py",
        "FROM span WHERE +log = ?",
        "FROM span WHERE log = ?",
        "tests/stores/test_repair.py::test_an_index_that_lacks_spans_costs_no_message",
    ),
    mutant(
        "lease-forgotten-by-whoever-wrote-last",
        "stores/sqlite/write_tx.py",
        "        self._db.execute(PUT_LEASE, bound)\n        self._let_go(record)\n",
        "        self._db.execute(PUT_LEASE, bound)\n",
        "tests/stores/test_sqlite.py::"
        "test_a_session_that_grows_is_read_again_only_after_something_else_has_changed",
    ),
    mutant(
        "deferred-begin",
        "stores/sqlite/commit_queue.py",
        'self._db.execute("BEGIN IMMEDIATE")',
        'self._db.execute("BEGIN DEFERRED")',
        "tests/stores/test_processes.py::test_eight_processes_append_to_one_session_and_to_their_own[sqlite]",
    ),
    mutant(
        "no-row-lock",
        "stores/postgres/write_tx.py",
        'LOCKED_BY_ID = f"{BY_ID} FOR UPDATE"',
        "LOCKED_BY_ID = BY_ID",
        "tests/stores/test_processes.py::test_eight_processes_append_to_one_session_and_to_their_own[postgres]",
    ),
    mutant(
        "delete-takes-shared-entries-sqlite",
        "stores/sqlite/write_tx.py",
        "FROM span WHERE +log = ? GROUP BY",
        "FROM span WHERE +log = ? AND session = log GROUP BY",
        "tests/service/history/test_forks.py::test_deleting_the_source_leaves_the_fork_whole[sqlite-same connection]",
    ),
    mutant(
        "delete-takes-shared-entries-postgres",
        "stores/postgres/write_tx.py",
        "LEFT JOIN span s ON s.owner = %(owner)s AND s.log = %(log)s",
        "LEFT JOIN span s ON s.owner = %(owner)s AND s.log = %(log)s AND s.num = s.log",
        "tests/service/history/test_forks.py::test_deleting_the_source_leaves_the_fork_whole[postgres-second connection]",
    ),
    mutant(
        "index-row-left-after-delete-sqlite",
        "stores/sqlite/write_tx.py",
        "            self._unindex([number for _, number in rows])\n",
        "",
        "tests/stores/test_sqlite.py::test_the_index_holds_no_row_of_what_was_removed[delete]",
    ),
    mutant(
        "index-row-left-after-delete-postgres",
        "stores/postgres/write_tx.py",
        '    "DELETE FROM title WHERE owner = %(owner)s AND num = %(num)s",\n',
        "",
        "tests/stores/test_work_counts.py::test_nothing_is_left_of_what_was_deleted[postgres]",
    ),
    mutant(
        "log-keeps-what-was-erased",
        "stores/sqlite/store.py",
        "            self._writer.empty_log()\n",
        "            pass\n",
        "tests/stores/test_free_space.py::test_a_log_that_others_have_open_is_emptied[erase]",
    ),
    mutant(
        "free-space-keeps-what-was-erased",
        "stores/sqlite/replacement.py",
        '        db.execute("VACUUM")\n',
        "        pass\n",
        "tests/stores/test_free_space.py::test_what_sqlite_has_moved_leaves_the_free_space_of_its_pages",
    ),
    mutant(
        "planner-keeps-samples-of-what-is-gone",
        "stores/postgres/store.py",
        "await self._transactions.run(WRITE, checks.forget_samples)",
        "pass",
        "tests/stores/test_free_space.py::test_the_planner_keeps_no_sample_of_what_is_gone[delete]",
    ),
    mutant(
        "quarantine-keeps-what-was-erased",
        "service/catalog/quarantined.py",
        "    if not logs:\n",
        "    if logs or not logs:\n",
        "tests/stores/test_repair.py::test_what_is_erased_or_deleted_goes_from_the_quarantine_too[erase-sqlite]",
    ),
    mutant(
        "restored-backup-has-words-in-free-space",
        "stores/sqlite/replacement.py",
        'fetch(source, "PRAGMA secure_delete = ON")',
        "pass",
        "tests/stores/test_erased_words.py::"
        "test_what_was_erased_or_deleted_is_nowhere_and_nothing_brings_it_back[sqlite-0]",
    ),
    mutant(
        "restored-backup-keeps-what-was-lost",
        "stores/sqlite/replacement.py",
        "lost = None if losses is None else lose(part, losses)",
        "lost = None",
        "tests/cli/test_restore_backup.py::test_what_was_erased_or_deleted_after_the_backup_stays_away[]",
    ),
    mutant(
        "index-row-left-after-erase-sqlite",
        "stores/sqlite/write_tx.py",
        "        self._unindex([number for (number,) in fetch(self._db, NUMBER, (pos,))])\n",
        "",
        "tests/stores/test_sqlite.py::test_the_index_holds_no_row_of_what_was_removed[erase]",
    ),
    mutant(
        "index-row-left-after-erase-postgres",
        "stores/postgres/write_tx.py",
        "UPDATE entry SET payload = %b, crc = %s, number = NULL, said = NULL, words = NULL WHERE",
        "UPDATE entry SET payload = %b, crc = %s WHERE",
        "tests/service/search/test_sessions.py::test_what_is_deleted_erased_or_rewound_away_is_not_found[postgres-second connection]",
    ),
    Mutant(
        "acknowledged-before-commit",
        (
            Change("stores/sqlite/commit_queue.py", "QUICK_SECONDS = 0.001", "QUICK_SECONDS = -1.0"),
            Change(
                "stores/sqlite/commit_queue.py",
                "            began = time.perf_counter()\n",
                "            self._answer(done)\n            time.sleep(0.2)\n            began = time.perf_counter()\n",
            ),
        ),
        "tests/stores/test_processes.py::test_what_was_acknowledged_outlives_the_process_that_was_told_so[sqlite]",
    ),
    Mutant(
        "acknowledged-before-commit-postgres",
        (
            Change(
                "stores/postgres/store.py", "from collections.abc", "import asyncio\nfrom collections.abc"
            ),
            Change(
                "stores/postgres/store.py",
                "            return await self._transactions.run(WRITE, whole)\n",
                "            told = asyncio.get_running_loop().create_future()\n"
                "            async def late(tx):\n"
                "                done = await whole(tx)\n"
                "                told.done() or told.set_result(done)\n"
                "                await asyncio.sleep(0.05)\n"
                "                return done\n"
                "            def end(task):\n"
                "                told.done() or told.set_exception(task.exception())\n"
                "            running = asyncio.ensure_future(self._transactions.run(WRITE, late))\n"
                "            running.add_done_callback(end)\n"
                "            return await told\n",
            ),
        ),
        "tests/stores/test_processes.py::test_what_was_acknowledged_outlives_the_process_that_was_told_so[postgres]",
    ),
    Mutant(
        "synchronous-normal",
        (
            Change(
                "stores/sqlite/connection.py", "PRAGMA synchronous = FULL;", "PRAGMA synchronous = NORMAL;"
            ),
            Change("stores/sqlite/connection.py", "sync != 2", "sync != 1"),
        ),
        "tests/stores/test_sqlite.py::test_every_connection_keeps_the_promised_settings",
    ),
    mutant(
        "failed-commit-acknowledged",
        "stores/sqlite/commit_queue.py",
        '            self._db.execute("COMMIT")\n',
        '            try:\n                self._db.execute("COMMIT")\n'
        "            except apsw.Error as error:\n                self._recover(error)\n",
        "tests/stores/test_sqlite.py::test_an_append_whose_commit_fails_is_not_acknowledged",
    ),
    mutant(
        "migration-recorded-outside-its-transaction-sqlite",
        "stores/sqlite/migrate.py",
        "            db.execute(step.sql)\n            db.execute(RECORD",
        '            db.execute(step.sql)\n            db.execute("COMMIT")\n'
        '            db.execute("BEGIN IMMEDIATE")\n            db.execute(RECORD',
        "tests/stores/test_sqlite.py::test_a_migration_and_its_record_are_one_transaction",
    ),
    mutant(
        "migration-recorded-outside-its-transaction-postgres",
        "stores/postgres/migrate.py",
        "            await connection.execute(missing[0].statements)\n",
        "            await connection.execute(missing[0].statements)\n"
        '            await connection.execute("COMMIT")\n            await connection.execute("BEGIN")\n',
        "tests/stores/test_postgres.py::test_a_migration_that_fails_leaves_nothing_of_itself",
    ),
    mutant(
        "numbers-of-sessions-stay-sqlite",
        "stores/sqlite/write_tx.py",
        "        self._count(owner, old, new)\n        if",
        "        if",
        "tests/service/admin/test_statistics.py::test_the_numbers_of_sessions_follow_every_change[sqlite-same connection]",
    ),
    mutant(
        "days-outlive-their-session-sqlite",
        "stores/sqlite/write_tx.py",
        "        self._db.execute(RESTATE, (record.num, False))\n        bound",
        "        bound",
        "tests/service/admin/test_statistics.py::test_days_go_with_their_session_and_not_with_its_forks[sqlite-same connection]",
    ),
    mutant(
        "days-outlive-their-session-postgres",
        "stores/postgres/write_tx.py",
        '    "DELETE FROM day WHERE owner = %(owner)s AND num = %(num)s",\n',
        "",
        "tests/service/admin/test_statistics.py::test_days_go_with_their_session_and_not_with_its_forks[postgres-second connection]",
    ),
)
