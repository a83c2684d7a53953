"""Breakages of the rules that hold in every store and at every door."""

from __future__ import annotations

from tests.mutants.definitions import Change, Mutant, mutant

MUTANTS = (
    mutant(
        "copies-of-a-request-count-twice",
        "service/admin/usage.py",
        "lambda: list(each_once(requests, labels.rank))",
        "lambda: [each for each in requests if each.log in labels.rank]",
        "tests/service/test_usage.py::"
        "test_copies_of_a_request_count_once_where_it_was_first_made[memory-same connection]",
    ),
    mutant(
        "compaction-lowers-the-cost",
        "service/records.py",
        "        sums = sums._replace(cost=whole.cost)\n",
        "",
        "tests/service/test_usage.py::test_nothing_lowers_the_cost[memory-same connection]",
    ),
    mutant(
        "unmeasured-context-is-never-compacted",
        "values/token_count.py",
        "        return Tokens(total(history).number, estimated=True)\n",
        "        return Tokens(0, estimated=True)\n",
        "tests/service/turns/test_compaction.py::"
        "test_a_context_that_no_answer_has_measured_is_made_smaller_before_it_is_sent[memory]",
    ),
    mutant(
        "hidden-holder-is-dead",
        "holders.py",
        "    if not _exists(pid):\n        return True\n",
        "    if not (proc / str(pid)).exists():\n        return True\n",
        "tests/service/turns/test_holders.py::"
        "test_a_living_process_that_the_system_hides_is_not_taken_for_dead",
    ),
    mutant(
        "unreadable-holder-is-dead",
        "holders.py",
        "descriptor is free to look.\n        return False",
        "descriptor is free to look.\n        return True",
        "tests/service/turns/test_holders.py::"
        "test_a_process_without_a_free_descriptor_takes_nobody_living_for_dead[memory]",
    ),
    mutant(
        "summary-beside-kept-messages-stays",
        "values/spans.py",
        'if span.expands in checkpoints and span.kind != "reset"]',
        'if span.expands in checkpoints and span.kind != "reset" and not _kept_after(spans, at)]',
        "tests/service/history/test_erasure.py::"
        "test_a_summary_goes_with_a_message_that_was_kept_beside_it_because_it_may_quote_it[memory-same connection-a model]",
    ),
    mutant(
        "deleted-session-imported-unasked",
        "service/transfer/import_.py",
        "if await tx.buried(owner, name.session):",
        "if False:",
        "tests/service/history/test_erasure.py::"
        "test_what_was_erased_or_deleted_does_not_come_back_from_an_export[memory-same connection-True-False]",
    ),
    mutant(
        "facts-of-everybody-in-a-turn-of-nobody",
        "service/memory/facts.py",
        "nobody=person is None",
        "nobody=False",
        "tests/service/turns/test_remembered.py::test_nobody_s_facts_reach_another_person_by_any_way[memory]",
    ),
    mutant(
        "facts-of-other-agents-in-a-turn",
        "service/memory/notebook.py",
        "if fact.agent_id in (None, self._session.agent_id)",
        "if True",
        "tests/service/turns/test_remembered.py::"
        "test_a_turn_is_told_what_bears_on_its_prompt_within_the_budget[memory]",
    ),
    mutant(
        "migration-brings-back-erased",
        "service/transfer/migrated.py",
        "known_as = (*parcel.known_as, KnownAs(session_id, entries))",
        "known_as = ()",
        "tests/gateway/methods/test_migration.py::"
        "test_what_was_erased_does_not_return_and_what_waits_is_taken_along[memory]",
    ),
    mutant(
        "migration-takes-facts-about-others",
        "service/transfer/migrated.py",
        "facts=_own_facts(parcel),",
        "facts=parcel.facts,",
        "tests/gateway/methods/test_migration.py::test_what_a_file_may_not_set_is_named_and_left_out[memory]",
    ),
    mutant(
        "untrusted-import-brings-back-erased",
        "service/transfer/untrusted.py",
        "return replace(made, known_as=(in_file, *made.known_as))",
        "return made",
        "tests/service/history/test_erasure.py::"
        "test_what_was_erased_or_deleted_does_not_come_back_from_an_export[memory-same connection-False-False]",
    ),
    mutant(
        "fork-cut-off-by-one",
        "values/spans.py",
        "return (*level[:at], span._replace(last=place.seq))",
        "return (*level[:at], span._replace(last=place.seq - 1))",
        "tests/service/history/test_forks.py::test_a_fork_at_an_entry_ends_with_it[memory-same connection-1]",
    ),
    mutant(
        "cursor-signature-ignored",
        "values/cursors.py",
        "if not hmac.compare_digest(mac, _mac(secret, owner, question, body)):",
        "if len(mac) != MAC_BYTES:",
        "tests/service/test_validation.py::test_a_cursor_with_any_character_changed_is_refused[memory]",
    ),
    mutant(
        "cursor-owner-ignored",
        "values/cursors.py",
        "about = encode([owner, question])",
        "about = encode([question])",
        "tests/service/test_validation.py::"
        "test_a_cursor_is_good_for_its_owner_its_question_and_its_method_only[memory-same connection]",
    ),
    mutant(
        "cursor-filter-ignored",
        "service/catalog/sessions.py",
        '["find", given]',
        '["find"]',
        "tests/service/test_validation.py::"
        "test_a_cursor_is_good_for_its_owner_its_question_and_its_method_only[memory-same connection]",
    ),
    mutant(
        "cursor-readable",
        "values/cursors.py",
        'mask = hashlib.shake_256(b"cursor" + secret + mac).digest(len(data))',
        "mask = bytes(len(data))",
        "tests/service/test_isolation.py::test_a_cursor_tells_nothing_to_whoever_holds_it[memory]",
    ),
    mutant(
        "rename-keeps-revision",
        "service/records.py",
        "session = replace(record.session, revision=record.session.revision + 1, **fields)",
        "session = replace(record.session, revision=record.session.revision + (kind != 'rename'), **fields)",
        "tests/service/catalog/test_sessions.py::test_a_rename_is_kept_with_the_titles_before_it[memory-same connection]",
    ),
    mutant(
        "fence-ignored",
        "service/records.py",
        "if fence is not None and (held is None or held.fence != fence):",
        "if fence is not None and held is None:",
        "tests/service/turns/test_leases.py::test_a_holder_that_slept_past_its_lease_cannot_write[memory]",
    ),
    mutant(
        "expiry-ignored",
        "service/records.py",
        "if lease is None or lease.expires_at <= now or is_gone(lease.holder):",
        "if lease is None or is_gone(lease.holder):",
        "tests/service/turns/test_leases.py::test_a_holder_that_slept_past_its_lease_cannot_write[memory]",
    ),
    mutant(
        "dead-turn-left-open",
        "service/turns/interrupted.py",
        "*failed_results(unanswered_calls(context), INTERRUPTED),",
        "*failed_results([], INTERRUPTED),",
        "tests/service/turns/test_turns.py::test_what_a_dead_turn_left_open_is_closed_before_the_next_prompt[memory]",
    ),
    mutant(
        "half-said-words-dropped",
        "service/turns/interrupted.py",
        "for part in (*live.earlier, *live.parts) if",
        "for part in live.parts[:0] if",
        "tests/service/turns/test_turns.py::test_what_a_dead_turn_was_saying_is_kept_when_the_session_goes_on[memory]",
    ),
    mutant(
        "late-holder-goes-on",
        "service/turns/interrupted.py",
        "over = replace(lease, fence=lease.fence + 1, expires_at=min(lease.expires_at, at))",
        "over = replace(lease, expires_at=min(lease.expires_at, at))",
        "tests/service/turns/test_interrupted.py::test_a_turn_that_comes_back_after_it_was_closed_writes_nothing[memory]",
    ),
    mutant(
        "branches-not-searched",
        "service/search/standing.py",
        "said[each.checkpoint.id] = each.lists.conversation()",
        "said[each.checkpoint.id] = []",
        "tests/service/transfer/test_branches.py::test_what_a_branch_says_is_found_and_marked[memory]",
    ),
    mutant(
        "senders-unknown-to-questions",
        "service/search/best.py",
        "SPOKEN_BY = 2.0",
        "SPOKEN_BY = 0.0",
        "tests/service/search/test_recall.py::test_who_said_it_is_known_by_the_sender_of_a_message",
    ),
    mutant(
        "field-of-another-message",
        "service/search/conditions.py",
        "        return all([await self._holds(each, entry, place) for each in self._message])\n",
        "        return True\n",
        "tests/service/search/test_fields.py::test_each_field_narrows_in_both_orders[memory-same connection]",
    ),
    mutant(
        "permitted-by-metadata",
        "service/validation.py",
        "if isinstance(name, str) and name.startswith(RESERVED):",
        "if not name:",
        "tests/service/turns/test_permissions.py::test_no_caller_can_permit_anything_through_metadata[memory-same connection]",
    ),
    mutant(
        "inbox-left-behind",
        "service/turns/leases.py",
        "if not ttl_ms:",
        "if False:",
        "tests/service/history/test_inbox.py::test_what_is_appended_while_a_turn_runs_waits_behind_it[memory]",
    ),
    mutant(
        "inbox-overtaken",
        "service/history/inbox.py",
        "return record, bool((await tx.inbox_size(record.owner, record.num)).rows)",
        "return record, False",
        "tests/service/history/test_inbox.py"
        "::test_a_prompt_that_was_left_waiting_is_answered_by_another_runner_of_its_kind[memory]",
    ),
    mutant(
        "steered-before-a-result",
        "service/turns/runner.py",
        "if self._calls or not await self._journal.is_steered():",
        "if not await self._journal.is_steered():",
        "tests/service/history/test_inbox.py::test_what_steers_reaches_the_running_turn_behind_a_tool_s_result[memory]",
    ),
    mutant(
        "slept-past-lease-lost",
        "service/turns/runner.py",
        "self._fence = await self._journal.regain(fence, LEASE_MS, self._rows)",
        "raise",
        "tests/service/turns/test_turns.py::test_a_turn_that_slept_past_its_lease_goes_on_if_nobody_has_had_it[memory]",
    ),
    mutant(
        "plan-mode-asks",
        "permissions.py",
        'return "refuse"\n    if mode == "acceptEdits"',
        'return "ask"\n    if mode == "acceptEdits"',
        "tests/service/turns/test_permissions.py::test_only_the_modes_that_may_ask_do[memory-plan]",
    ),
    mutant(
        "idempotency-payload-ignored",
        "service/idempotency.py",
        "        if note.digest != self._digest:\n",
        "        if not note.digest:\n",
        "tests/service/history/test_entries.py::test_an_idempotency_key_with_another_payload_is_a_conflict[memory]",
    ),
    mutant(
        "restore-drops-the-second-compaction",
        "service/history/checkpoints.py",
        "now = (await load_lists(tx, record)).conversation()",
        "now = (await load_lists(tx, record)).context()",
        "tests/service/history/test_forks.py::"
        "test_a_restore_after_two_compactions_drops_nothing_that_was_said[memory-same connection]",
    ),
    mutant(
        "walk-forgets-what-changed-meanwhile",
        "service/catalog/sessions.py",
        "        if below is None or await tx.newest(owner) == walk.since:\n",
        "        if True:\n",
        "tests/service/catalog/test_list.py::"
        "test_a_session_that_is_touched_again_and_again_does_not_hide_the_others[memory]",
    ),
    mutant(
        "foreign-validated-first",
        "service/history/entries.py",
        "            record = await require_session(tx, who, session_id)\n            wanted.check()\n",
        "            wanted.check()\n            record = await require_session(tx, who, session_id)\n",
        "tests/service/test_isolation.py::test_wrong_arguments_for_a_foreign_session_are_not_looked_at[memory]",
    ),
    mutant(
        "user-s-title-replaced",
        "service/history/append.py",
        "    if record.session.title is not None:\n        return record\n",
        "",
        "tests/service/catalog/test_sessions.py::test_an_automatic_title_never_replaces_the_user_s[memory-same connection]",
    ),
    mutant(
        "pinned-not-spared",
        "service/admin/retention.py",
        "return session.pinned or recently",
        "return recently",
        "tests/service/admin/test_retention.py::"
        "test_pinned_leased_and_recently_read_sessions_are_spared[memory-same connection]",
    ),
    mutant(
        "amended-message-counted-twice",
        "values/days.py",
        "            _count(sums, before, -1)",
        "            pass",
        "tests/service/admin/test_statistics.py::test_a_message_that_its_source_has_amended_counts_once[memory-same connection]",
    ),
    mutant(
        "remote-with-its-password",
        "projects.py",
        "host, path = parts.hostname, parts.path",
        "host, path = parts.netloc, parts.path",
        "tests/values/test_projects.py::test_a_remote_is_named_by_host_and_path_without_credentials",
    ),
    mutant(
        "deep-frame-uncaught",
        "rpc/frames.py",
        "    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):\n"
        '        raise BadFrame(refusal(NULL, PARSE_ERROR, "Parse error: this is not JSON")) from None\n',
        "    except (msgspec.MsgspecError, ValueError, OverflowError):\n"
        '        raise BadFrame(refusal(NULL, PARSE_ERROR, "Parse error: this is not JSON")) from None\n',
        "tests/acp/agent/test_hostile_input.py::test_a_bad_frame_is_answered_properly_and_the_next_good_one_works",
    ),
    mutant(
        "search-words-as-typed",
        "values/words.py",
        "    found = tuple(lowered.split())\n",
        "    found = tuple(body.split())\n",
        "tests/service/search/test_sessions.py::test_any_text_is_a_query_or_refused_as_one[sqlite-same connection]",
    ),
    Mutant(
        "search-words-unquoted",
        (
            Change(
                "values/words.py", "    found = tuple(lowered.split())\n", "    found = tuple(body.split())\n"
            ),
            Change("values/words.py", '" <-> ".join(map(_lexeme, term.tokens))', '" <-> ".join(term.tokens)'),
        ),
        "tests/service/search/test_sessions.py::test_any_text_is_a_query_or_refused_as_one[postgres-second connection]",
    ),
    mutant(
        "fork-being-made-is-not-visited",
        "service/history/erasure.py",
        "while new := set(await tx.reaching(owner, form.log)) - visited:",
        "if new := set(await tx.reaching(owner, form.log)) - visited:",
        "tests/stores/test_postgres.py::test_a_fork_that_is_being_made_while_a_message_is_erased_is_visited_too",
    ),
    mutant(
        "lost-title-imported",
        "service/history/erasure.py",
        "    await note_lost_titles(tx, key, record, lost)\n",
        "",
        "tests/service/history/test_erasure.py::"
        "test_a_title_made_from_what_was_erased_comes_back_only_with_a_prompt_that_gives_it[memory-same connection-False]",
    ),
    mutant(
        "half-a-secret-in-a-title",
        "exports/redaction.py",
        "titles = [without_half_a_word(title) for title in",
        "titles = [title for title in",
        "tests/service/transfer/test_formats.py::"
        "test_no_beginning_of_a_secret_leaves_in_a_title_that_breaks_off_in_it[memory-same connection]",
    ),
    mutant(
        "queries-of-any-length",
        "values/words.py",
        "QUERY_CHARS = 1_000\nQUERY_TERMS = 32\nQUERY_BEGINNINGS = 8\nQUERY_LETTERS = 1\n",
        "QUERY_CHARS = 1_000_000\nQUERY_TERMS = 100_000\nQUERY_BEGINNINGS = QUERY_LETTERS = 100_000\n",
        "tests/values/test_query.py::test_a_query_is_bounded",
    ),
    Mutant(
        "store-open-to-others",
        (
            Change("__main__.py", "    os.umask(0o077)  # only", "    # only"),
            Change("stores/sqlite/connection.py", "folder.mkdir(mode=0o700)", "folder.mkdir()"),
            Change(
                "stores/sqlite/connection.py", "os.O_RDWR | os.O_CLOEXEC, 0o600)", "os.O_RDWR | os.O_CLOEXEC)"
            ),
            Change("stores/sqlite/connection.py", "    os.fchmod(descriptor, 0o600)\n", ""),
        ),
        "tests/gateway/server/test_start.py::test_the_first_start_makes_a_token_that_only_its_user_can_read",
    ),
    mutant(
        "lengths-unchecked",
        "limits.py",
        "    if len(text) > most:\n",
        "    if len(text) > 10 * most:\n",
        "tests/service/test_validation.py::test_wrong_input_is_refused_with_its_code[memory-an endless title]",
    ),
    mutant(
        "page-code-good-twice",
        "service/access/signin.py",
        "            if token is None or await USED_CODES.get(tx, slip.owner, slip.key) is not None:\n",
        "            if token is None:\n",
        "tests/gateway/page/test_signin.py::test_a_code_works_once_whoever_comes_first",
    ),
    mutant(
        "failed-edits-are-counted",
        "edits/reach.py",
        "    done = [each for each in records if not each.failed]\n",
        "    done = list(records)\n",
        "tests/service/edits/test_edits.py::"
        "test_counts_are_those_of_the_conversation_and_of_nothing_that_was_taken_back[memory-same connection]",
    ),
    mutant(
        "edits-that-were-rewound-are-counted",
        "edits/reach.py",
        "            found += [each for each in records if stretch.first <= each.seq <= stretch.last]\n",
        "            found += records\n",
        "tests/service/edits/test_edits.py::"
        "test_counts_are_those_of_the_conversation_and_of_nothing_that_was_taken_back[memory-same connection]",
    ),
    mutant(
        "what-is-not-committed-is-nobodys",
        "cli/source_lines.py",
        "    found = _told(path, blamed) if texts is None else _as_it_is(path, blamed, texts, head)\n",
        "    found = _told(path, blamed)\n",
        "tests/cli/test_repositories.py::test_lines_that_are_not_committed_yet_are_traced_too",
    ),
    mutant(
        "a-shallow-clone-gives-everything-to-its-first-commit",
        "cli/git.py",
        '        if commit.parent is None and "\\nparent " in head:\n',
        "        if not head:\n",
        "tests/cli/test_repositories.py::test_a_shallow_clone_says_what_it_lacks",
    ),
    mutant(
        "a-commit-that-brings-lines-back-is-of-who-wrote-them",
        "cli/source_lines.py",
        "        changes.append(Change(_without_restored(git, commit, added), commit.id))\n",
        "        changes.append(Change(added, commit.id))\n",
        "tests/cli/test_repositories.py::"
        "test_a_commit_that_brings_lines_back_is_not_of_the_session_that_once_wrote_them",
    ),
)
