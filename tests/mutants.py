"""Break the code on purpose and see the tests notice: `python -m tests.mutants [--only NAME]`.

Each breakage is put into a copy of the sources in a temporary folder, and the test that guards against it must fail
there. Before that, all these tests must pass on a copy that is whole. The exit code is 1 if a breakage goes unnoticed
or its text is no longer in the sources.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/recollect")
COPIED = ("src", "tests", "pyproject.toml")
PATIENCE = 300
NOTICED = "noticed"


class Change(NamedTuple):
    """Text of a file of the package, and what it becomes."""

    file: str
    old: str
    new: str


class Mutant(NamedTuple):
    """A breakage, and the test that must notice. Where two parts guard the same promise, both are broken."""

    name: str
    changes: tuple[Change, ...]
    test: str


def _mutant(name: str, file: str, old: str, new: str, test: str) -> Mutant:
    return Mutant(name, (Change(file, old, new),), test)


CONTRACT = "tests/contract/test_"
MUTANTS = (
    Mutant(
        "list-without-owner-sqlite",
        (
            Change(
                "stores/sqlite/reading.py",
                "WHERE s.owner = :owner AND %s s.archived = :archived",
                "WHERE s.owner IN (SELECT num FROM owner) AND %s s.archived = :archived",
            ),
            Change(
                "stores/sqlite/reading.py",
                'BY_NUM = f"SELECT {COLUMNS} FROM session WHERE owner = ? AND num = ?"',
                'BY_NUM = f"SELECT {COLUMNS} FROM session WHERE ? >= 0 AND num = ?"',
            ),
        ),
        f"{CONTRACT}isolation.py::test_an_owner_s_name_is_never_a_pattern[sqlite-same connection]",
    ),
    _mutant(
        "list-without-owner-postgres",
        "stores/postgres/listing.py",
        "WHERE s.owner = %(owner)s AND {{archived}} AND {{leader}} AND {{bound}}",
        "WHERE s.owner <> '' AND {{archived}} AND {{leader}} AND {{bound}}",
        f"{CONTRACT}isolation.py::test_an_owner_s_name_is_never_a_pattern[postgres-same connection]",
    ),
    Mutant(
        "search-without-owner-sqlite",
        (
            Change(
                "stores/sqlite/index.py",
                """query = _query((f"o{owner}", kind and f"k{kind}"), terms)""",
                """query = _query((f"o{owner}", kind and f"k{kind}"), terms).replace(f'"o{owner}"', '"o" *')""",
            ),
            Change(
                "stores/sqlite/reading.py",
                "AND e.owner = :owner\nUNION ALL",
                "AND e.owner <> -:owner\nUNION ALL",
            ),
        ),
        f"{CONTRACT}isolation.py::test_a_search_of_the_store_finds_documents_of_one_owner[sqlite]",
    ),
    Mutant(
        "search-without-owner-postgres",
        (
            Change(
                "stores/postgres/searching.py",
                "WHERE owner = %(owner)s AND number",
                "WHERE owner <> '' AND number",
            ),
            Change(
                "stores/postgres/lexemes.py",
                'digest = hashlib.sha256(owner.encode("utf-8", "surrogatepass")).digest()',
                'digest = hashlib.sha256(b"everyone").digest()',
            ),
        ),
        f"{CONTRACT}isolation.py::test_a_search_of_the_store_finds_documents_of_one_owner[postgres]",
    ),
    _mutant(
        "fork-without-owner-postgres",
        "stores/postgres/writing.py",
        'LOCKED_BY_ID = f"{BY_ID} FOR UPDATE"',
        "LOCKED_BY_ID = BY_ID.replace('owner = %s', \"%s <> ''\") + ' FOR UPDATE'",
        f"{CONTRACT}isolation.py::test_a_foreign_session_is_never_forked[postgres-same connection]",
    ),
    _mutant(
        "fork-without-owner-sqlite",
        "stores/sqlite/reading.py",
        'SESSION = f"SELECT {COLUMNS} FROM session WHERE owner = ? AND id = ?"',
        'SESSION = f"SELECT {COLUMNS} FROM session WHERE ? >= 0 AND id = ?"',
        f"{CONTRACT}isolation.py::test_a_foreign_session_is_never_forked[sqlite-same connection]",
    ),
    _mutant(
        "foreign-unlike-missing",
        "stores/sqlite/reading.py",
        "        return record_of(owner, rows[0]) if rows else None\n",
        "        if not rows and fetch(self._db, 'SELECT 1 FROM session WHERE id = ?', (value,)):\n"
        "            raise StoreDamaged('not yours')\n"
        "        return record_of(owner, rows[0]) if rows else None\n",
        f"{CONTRACT}isolation.py::test_foreign_is_answered_exactly_like_missing[sqlite-same connection-valid]",
    ),
    _mutant(
        "deferred-begin",
        "stores/sqlite/writer.py",
        'self._db.execute("BEGIN IMMEDIATE")',
        'self._db.execute("BEGIN DEFERRED")',
        f"{CONTRACT}processes.py::test_eight_processes_append_to_one_session_and_to_their_own[sqlite]",
    ),
    _mutant(
        "no-row-lock",
        "stores/postgres/writing.py",
        'LOCKED_BY_ID = f"{BY_ID} FOR UPDATE"',
        "LOCKED_BY_ID = BY_ID",
        f"{CONTRACT}processes.py::test_eight_processes_append_to_one_session_and_to_their_own[postgres]",
    ),
    _mutant(
        "fork-cut-off-by-one",
        "spans.py",
        "return (*level[:at], span._replace(last=place.seq))",
        "return (*level[:at], span._replace(last=place.seq - 1))",
        f"{CONTRACT}forking.py::test_a_fork_at_an_entry_ends_with_it[memory-same connection-1]",
    ),
    _mutant(
        "delete-takes-shared-entries-sqlite",
        "stores/sqlite/writing.py",
        "FROM span WHERE log = ? GROUP BY",
        "FROM span WHERE log = ? AND session = log GROUP BY",
        f"{CONTRACT}forking.py::test_deleting_the_source_leaves_the_fork_whole[sqlite-same connection]",
    ),
    _mutant(
        "delete-takes-shared-entries-postgres",
        "stores/postgres/removing.py",
        "LEFT JOIN span s ON s.owner = %(owner)s AND s.log = %(log)s",
        "LEFT JOIN span s ON s.owner = %(owner)s AND s.log = %(log)s AND s.num = s.log",
        f"{CONTRACT}forking.py::test_deleting_the_source_leaves_the_fork_whole[postgres-same connection]",
    ),
    _mutant(
        "index-row-left-after-delete-sqlite",
        "stores/sqlite/writing.py",
        "            self._unindex([number for _, number in rows])\n",
        "",
        "tests/stores/test_sqlite.py::test_the_index_holds_no_row_of_what_was_removed[delete]",
    ),
    _mutant(
        "index-row-left-after-delete-postgres",
        "stores/postgres/removing.py",
        '    "DELETE FROM title WHERE owner = %(owner)s AND num = %(num)s",\n',
        "",
        f"{CONTRACT}work_counts.py::test_nothing_is_left_of_what_was_deleted[postgres]",
    ),
    _mutant(
        "index-row-left-after-erase-sqlite",
        "stores/sqlite/writing.py",
        "        self._unindex([number for (number,) in fetch(self._db, NUMBER, (pos,))])\n",
        "",
        "tests/stores/test_sqlite.py::test_the_index_holds_no_row_of_what_was_removed[erase]",
    ),
    _mutant(
        "index-row-left-after-erase-postgres",
        "stores/postgres/writing.py",
        "UPDATE entry SET payload = %b, number = NULL, words = NULL WHERE",
        "UPDATE entry SET payload = %b WHERE",
        f"{CONTRACT}searching.py::test_what_is_deleted_erased_or_rewound_away_is_not_found[postgres-same connection]",
    ),
    _mutant(
        "cursor-signature-ignored",
        "cursors.py",
        "if not hmac.compare_digest(mac, _mac(secret, owner, question, body)):",
        "if len(mac) != MAC_BYTES:",
        f"{CONTRACT}bad_input.py::test_a_cursor_with_any_character_changed_is_refused[memory]",
    ),
    _mutant(
        "cursor-owner-ignored",
        "cursors.py",
        "about = encode([owner, question])",
        "about = encode([question])",
        f"{CONTRACT}bad_input.py::"
        "test_a_cursor_is_good_for_its_owner_its_question_and_its_method_only[memory-same connection]",
    ),
    _mutant(
        "cursor-filter-ignored",
        "service/catalogue.py",
        '["find", given]',
        '["find"]',
        f"{CONTRACT}bad_input.py::"
        "test_a_cursor_is_good_for_its_owner_its_question_and_its_method_only[memory-same connection]",
    ),
    _mutant(
        "cursor-readable",
        "cursors.py",
        'mask = hashlib.shake_256(b"cursor" + secret + mac).digest(len(data))',
        "mask = bytes(len(data))",
        f"{CONTRACT}isolation.py::test_a_cursor_tells_nothing_to_whoever_holds_it[memory]",
    ),
    _mutant(
        "rename-keeps-revision",
        "service/core.py",
        "session = replace(record.session, revision=record.session.revision + 1, **fields)",
        "session = replace(record.session, revision=record.session.revision + (kind != 'rename'), **fields)",
        f"{CONTRACT}catalogue.py::test_a_rename_is_kept_with_the_titles_before_it[memory-same connection]",
    ),
    _mutant(
        "fence-ignored",
        "service/core.py",
        "if fence is not None and (held is None or held.fence != fence):",
        "if fence is not None and held is None:",
        f"{CONTRACT}leasing.py::test_a_holder_that_slept_past_its_lease_cannot_write[memory]",
    ),
    _mutant(
        "expiry-ignored",
        "service/core.py",
        "if lease is None or lease.expires_at <= now or is_gone(lease.holder):",
        "if lease is None or is_gone(lease.holder):",
        f"{CONTRACT}leasing.py::test_a_holder_that_slept_past_its_lease_cannot_write[memory]",
    ),
    _mutant(
        "dead-turn-left-open",
        "service/desk.py",
        "[*failed(unanswered(before), INTERRUPTED), prompt]",
        "[prompt]",
        f"{CONTRACT}turns.py::test_what_a_dead_turn_left_open_is_closed_before_the_next_prompt[memory]",
    ),
    _mutant(
        "permitted-by-metadata",
        "service/catalogue.py",
        "if isinstance(name, str) and name.startswith(OWN):",
        "if not name:",
        f"{CONTRACT}turn_permissions.py::test_no_caller_can_permit_anything_through_metadata[memory-same connection]",
    ),
    _mutant(
        "slept-past-lease-lost",
        "service/turning.py",
        "self._fence = await self._desk.regain(fence, LEASE_MS)",
        "raise",
        f"{CONTRACT}turns.py::test_a_turn_that_slept_past_its_lease_goes_on_if_nobody_has_had_it[memory]",
    ),
    _mutant(
        "plan-mode-asks",
        "permissions.py",
        'return "refuse"\n    if mode == "acceptEdits"',
        'return "ask"\n    if mode == "acceptEdits"',
        f"{CONTRACT}turn_permissions.py::test_only_the_modes_that_may_ask_do[memory-plan]",
    ),
    _mutant(
        "idempotency-payload-ignored",
        "service/catalogue.py",
        "            if memo.digest != digest:\n",
        "            if not memo.digest:\n",
        f"{CONTRACT}history.py::test_an_idempotency_key_with_another_payload_is_a_conflict[memory]",
    ),
    Mutant(
        "acknowledged-before-commit",
        (
            Change("stores/sqlite/writer.py", "QUICK_SECONDS = 0.001", "QUICK_SECONDS = -1.0"),
            Change(
                "stores/sqlite/writer.py",
                "            began = time.perf_counter()\n",
                "            self._answer(done)\n            time.sleep(0.05)\n            began = time.perf_counter()\n",
            ),
        ),
        f"{CONTRACT}processes.py::test_what_was_acknowledged_outlives_the_process_that_was_told_so[sqlite]",
    ),
    Mutant(
        "synchronous-normal",
        (
            Change("stores/sqlite/connection.py", "PRAGMA synchronous = FULL;", "PRAGMA synchronous = NORMAL;"),
            Change("stores/sqlite/connection.py", "sync != 2", "sync != 1"),
        ),
        "tests/stores/test_sqlite.py::test_every_connection_keeps_the_promised_settings",
    ),
    _mutant(
        "failed-commit-acknowledged",
        "stores/sqlite/writer.py",
        '            self._db.execute("COMMIT")\n',
        '            try:\n                self._db.execute("COMMIT")\n'
        "            except apsw.Error as error:\n                self._recover(error)\n",
        "tests/stores/test_sqlite.py::test_an_append_whose_commit_fails_is_not_acknowledged",
    ),
    _mutant(
        "transcript-line-begun-without-room",
        "claude/writing.py",
        "    reserve(descriptor, size, len(data))\n",
        "",
        "tests/claude/test_writing.py::test_a_line_that_there_is_no_room_for_is_not_begun",
    ),
    Mutant(
        "failure-answered-as-done",
        (
            Change(
                "gateway/calling.py",
                '        log.exception("%s failed", name)\n        raise internal() from error\n',
                '        log.exception("%s failed", name)\n        return b"{}"\n',
            ),
            Change(
                "gateway/calling.py",
                "    except RecollectError as error:\n        raise failure_of(error) from error\n",
                "    except RecollectError as error:\n"
                '        if error.code == "store_error":\n            return b"{}"\n'
                "        raise failure_of(error) from error\n",
            ),
        ),
        "tests/gateway/test_methods_input.py::test_a_fault_of_ours_is_told_without_its_words",
    ),
    _mutant(
        "policy-believes-the-clock",
        "gateway/schedule.py",
        "    return lambda: min(clock(), began + int((passed() - at) * 1_000))\n",
        "    return clock\n",
        "tests/gateway/test_schedule.py::test_a_clock_that_jumps_ahead_makes_nothing_old[memory-sessions are deleted]",
    ),
    _mutant(
        "restore-drops-the-second-compaction",
        "service/forking.py",
        "now = (await load_lists(tx, record)).conversation()",
        "now = (await load_lists(tx, record)).context()",
        f"{CONTRACT}forking.py::"
        "test_a_restore_after_two_compactions_drops_nothing_that_was_said[memory-same connection]",
    ),
    _mutant(
        "migration-recorded-outside-its-transaction-sqlite",
        "stores/sqlite/migrate.py",
        "            db.execute(step.sql)\n            db.execute(RECORD",
        '            db.execute(step.sql)\n            db.execute("COMMIT")\n'
        '            db.execute("BEGIN IMMEDIATE")\n            db.execute(RECORD',
        "tests/stores/test_sqlite.py::test_a_migration_and_its_record_are_one_transaction",
    ),
    _mutant(
        "migration-recorded-outside-its-transaction-postgres",
        "stores/postgres/migrate.py",
        "            await connection.execute(missing[0].statements)\n",
        "            await connection.execute(missing[0].statements)\n"
        '            await connection.execute("COMMIT")\n            await connection.execute("BEGIN")\n',
        "tests/stores/test_postgres.py::test_a_migration_that_fails_leaves_nothing_of_itself",
    ),
    _mutant(
        "walk-forgets-what-changed-meanwhile",
        "service/catalogue.py",
        "        if below is None or await tx.newest(owner) == walk.since:\n",
        "        if True:\n",
        f"{CONTRACT}listing.py::"
        "test_a_session_that_is_touched_again_and_again_does_not_hide_the_others[memory]",
    ),
    _mutant(
        "foreign-validated-first",
        "service/history.py",
        "            record = await required(tx, who, session_id)\n            checked_limit(limit, HISTORY_PAGE)\n",
        "            checked_limit(limit, HISTORY_PAGE)\n            record = await required(tx, who, session_id)\n",
        f"{CONTRACT}isolation.py::test_wrong_arguments_for_a_foreign_session_are_not_looked_at[memory]",
    ),
    _mutant(
        "user-s-title-replaced",
        "service/history.py",
        "        if record.session.title is not None:\n            return record\n",
        "",
        f"{CONTRACT}catalogue.py::test_an_automatic_title_never_replaces_the_user_s[memory-same connection]",
    ),
    _mutant(
        "pinned-not-spared",
        "service/retention.py",
        "return session.pinned or recently",
        "return recently",
        f"{CONTRACT}retention.py::"
        "test_pinned_leased_and_recently_read_sessions_are_spared[memory-same connection]",
    ),
    _mutant(
        "numbers-of-sessions-stay-sqlite",
        "stores/sqlite/writing.py",
        "        self._count(owner, old, new)\n        if",
        "        if",
        f"{CONTRACT}overview.py::test_the_numbers_of_sessions_follow_every_change[sqlite-same connection]",
    ),
    _mutant(
        "days-outlive-their-session-sqlite",
        "stores/sqlite/writing.py",
        "        self._db.execute(RESTATE, (record.num, False))\n        bound",
        "        bound",
        f"{CONTRACT}overview.py::test_days_go_with_their_session_and_not_with_its_forks[sqlite-same connection]",
    ),
    _mutant(
        "days-outlive-their-session-postgres",
        "stores/postgres/removing.py",
        '    "DELETE FROM day WHERE owner = %(owner)s AND num = %(num)s",\n',
        "",
        f"{CONTRACT}overview.py::test_days_go_with_their_session_and_not_with_its_forks[postgres-same connection]",
    ),
    _mutant(
        "amended-message-counted-twice",
        "days.py",
        "            sums[_said(before)] = sums[_said(before)].minus(_tally(before))",
        "            pass",
        f"{CONTRACT}overview.py::test_a_message_that_its_source_has_amended_counts_once[memory-same connection]",
    ),
    _mutant(
        "remote-with-its-password",
        "projects.py",
        "host, path = parts.hostname, parts.path",
        "host, path = parts.netloc, parts.path",
        "tests/unit/test_projects.py::test_a_remote_is_named_by_host_and_path_without_credentials",
    ),
    _mutant(
        "origin-unchecked",
        "gateway/guard.py",
        "    if len(origins) > 1 or any(origin != same and origin not in known.origins for origin in origins):\n",
        "    if not same:\n",
        "tests/gateway/test_server_places.py::test_a_page_of_another_origin_is_refused_everywhere",
    ),
    _mutant(
        "host-unchecked",
        "gateway/guard.py",
        "    if len(hosts) != 1 or not _is_ours(known, hosts[0], scope):\n",
        "    if len(hosts) != 1:\n",
        "tests/gateway/test_server_places.py::test_a_name_that_is_not_ours_is_refused_everywhere",
    ),
    _mutant(
        "scope-unchecked",
        "gateway/calling.py",
        "    if scope not in context.token.scopes:\n",
        "    if not scope:\n",
        "tests/gateway/test_methods_access.py::test_a_token_without_rights_learns_nothing[session.get]",
    ),
    _mutant(
        "method-without-a-rule",
        "gateway/methods/__init__.py",
        'Method(discover, Params, Raw, "read", NOTHING)',
        'Method(discover, Params, Raw, "", NOTHING)',
        "tests/gateway/test_methods_access.py::"
        "test_every_method_has_a_scope_an_ownership_rule_and_a_sentence",
    ),
    Mutant(
        "walk-follows-links",
        (
            Change(
                "engines/tools/roots.py",
                "FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
                "FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC",
            ),
            Change(
                "engines/tools/roots.py",
                "        return os.path.join(path, os.readlink(name, dir_fd=folder))\n",
                "        return None\n",
            ),
        ),
        "tests/engines/test_roots.py::test_a_path_that_leads_out_is_refused_for_reading_and_for_writing",
    ),
    Mutant(
        "export-passes-html",
        (
            Change("exports/rendering.py", '{"html": False, "highlight": highlight}', '{"html": True}'),
            Change(
                "exports/rendering.py",
                "    return nh3.clean(\n        html,",
                "    return html or nh3.clean(\n        html,",
            ),
        ),
        "tests/unit/test_exports_html.py::test_a_hostile_text_does_nothing_wherever_it_stands",
    ),
    _mutant(
        "fence-too-short",
        "exports/markdown.py",
        'fence = "`" * max(3, _longest_run(text) + 1)',
        'fence = "`" * 3',
        "tests/unit/test_exports_markdown.py::test_a_hostile_text_forges_nothing_wherever_it_stands",
    ),
    _mutant(
        "page-unescaped",
        "gateway/page/templates.py",
        "autoescape=True",
        "autoescape=False",
        "tests/page/test_hostile.py::test_hostile_addresses_do_nothing",
    ),
    _mutant(
        "deep-frame-uncaught",
        "rpc/wire.py",
        "    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):\n"
        '        raise BadFrame(refusal(NULL, PARSE_ERROR, "Parse error: this is not JSON")) from None\n',
        "    except (msgspec.MsgspecError, ValueError, OverflowError):\n"
        '        raise BadFrame(refusal(NULL, PARSE_ERROR, "Parse error: this is not JSON")) from None\n',
        "tests/acp/test_hostile.py::test_a_bad_frame_is_answered_properly_and_the_next_good_one_works",
    ),
    _mutant(
        "search-words-as-typed",
        "words.py",
        "    found = tuple(lowered.split())\n",
        "    found = tuple(body.split())\n",
        f"{CONTRACT}searching.py::test_any_text_is_a_valid_query[sqlite-same connection]",
    ),
    _mutant(
        "loopback-is-public",
        "engines/mcp/addresses.py",
        "    return found.is_global\n",
        "    return found.is_global or found.is_loopback\n",
        "tests/engines/test_mcp_addresses.py::test_whatever_is_not_public_is_not",
    ),
    _mutant(
        "programs-for-everybody",
        "engines/mcp/configured.py",
        "    if not local:\n",
        "    if not server.name:\n",
        "tests/engines/test_mcp.py::test_no_program_is_started_for_a_caller_from_outside",
    ),
    Mutant(
        "store-open-to-others",
        (
            Change("__main__.py", "    os.umask(0o077)  # whatever", "    # whatever"),
            Change("stores/sqlite/connection.py", "folder.mkdir(mode=0o700)", "folder.mkdir()"),
            Change(
                "stores/sqlite/connection.py", "os.O_RDWR | os.O_CLOEXEC, 0o600)", "os.O_RDWR | os.O_CLOEXEC)"
            ),
            Change("stores/sqlite/connection.py", "    os.fchmod(descriptor, 0o600)\n", ""),
        ),
        "tests/gateway/test_server_start.py::test_the_first_start_makes_a_token_that_only_its_user_can_read",
    ),
    _mutant(
        "lengths-unchecked",
        "limits.py",
        "    if len(text) > most:\n",
        "    if len(text) > 10 * most:\n",
        f"{CONTRACT}bad_input.py::test_wrong_input_is_refused_with_its_code[memory-an endless title]",
    ),
    _mutant(
        "secret-kinds-not-looked-for",
        "secrets/kinds.py",
        "return Kind(name, tuple(hints.split()), re.compile(EDGE + pattern, flags))",
        'return Kind(name, tuple(hints.split()), re.compile(EDGE + pattern + "(?!)", flags))',
        "tests/unit/test_secrets.py::test_a_secret_is_found_wherever_it_stands",
    ),
    _mutant(
        "server-looks-into-folders",
        "acp/opening.py",
        "here = door.offer.local and door.who == LOCAL",
        "here = True",
        "tests/gateway/test_server_agent.py::test_the_server_looks_into_no_folder_that_a_caller_names",
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", metavar="NAME", help="try one breakage alone", choices=[each.name for each in MUTANTS]
    )
    only = parser.parse_args().only
    chosen = [mutant for mutant in MUTANTS if only in (None, mutant.name)]
    with tempfile.TemporaryDirectory(prefix="recollect-mutants-") as folder:
        found = verdicts(Path(folder), chosen)
    survivors = [name for name, verdict in found.items() if verdict != NOTICED]
    _tell("\n  ".join([f"{len(chosen) - len(survivors)} of {len(chosen)} noticed", *survivors]))
    return 1 if survivors else 0


def verdicts(copy: Path, chosen: Sequence[Mutant]) -> dict[str, str]:
    """What became of each breakage in a copy of the sources; nothing if the tests fail without any."""
    copy_sources(copy)
    _tell(f"{len(chosen)} breakages; first the tests on sources that are whole …")
    whole = _run(copy, sorted({mutant.test for mutant in chosen}))
    if whole.returncode != 0:
        _tell(f"{whole.stdout}\nthe tests fail without any breakage")
        return dict.fromkeys((mutant.name for mutant in chosen), "NOT TRIED")
    return {mutant.name: _try(copy, mutant) for mutant in chosen}


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def copy_sources(copy: Path, names: Iterable[str] = COPIED) -> None:
    """Copy these parts of the project into a folder, to be broken there."""
    for name in names:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)


def _try(copy: Path, mutant: Mutant) -> str:
    """Break the copy, run the test, mend the copy."""
    began = time.monotonic()
    verdict = _judged(_run(copy, [mutant.test])) if broken(copy, mutant.changes) else "NOT APPLIED"
    for change in mutant.changes:
        shutil.copy(ROOT / PACKAGE / change.file, copy / PACKAGE / change.file)
    _tell(f"{verdict:11}  {mutant.name:52} {time.monotonic() - began:5.1f} s  {mutant.test}")
    return verdict


def broken(copy: Path, changes: Iterable[Change]) -> bool:
    """Make the changes in a copy; whether all of them could be made."""
    for change in changes:
        file = copy / PACKAGE / change.file
        text = file.read_text(encoding="utf-8")
        if change.old not in text:
            return False
        file.write_text(text.replace(change.old, change.new), encoding="utf-8")
    return True


def _judged(ran: subprocess.CompletedProcess[str]) -> str:
    """pytest's exit code 1 means that a test failed; any other but 0 is no verdict about the test."""
    return {0: "SURVIVED", 1: NOTICED}.get(ran.returncode, "NOT RUN")


def _run(copy: Path, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Run tests of the copy on the sources of the copy."""
    # No bytecode: a file that changes twice within a second could be taken for the one before.
    environment = {**os.environ, "PYTHONPATH": f"{copy / 'src'}:{copy}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
    )


if __name__ == "__main__":
    sys.exit(main())
