"""Breakages of the server, its page and what it hands out."""

from __future__ import annotations

from tests.mutants.definitions import Change, Mutant, mutant

MUTANTS = (
    mutant(
        "team-servers-sync",
        "cli/commands/serve.py",
        "is_loopback(where.host) and not (where.origins or where.names)",
        "is_loopback(where.host)",
        "tests/cli/test_first_minute.py::test_only_a_server_of_its_user_alone_syncs",
    ),
    mutant(
        "sync-outlives-its-server",
        "cli/commands/sync.py",
        "    threading.Thread(target=_end_with_server, daemon=True).start()\n",
        "",
        "tests/cli/test_first_minute.py::test_sync_ends_with_a_server_that_was_killed",
    ),
    mutant(
        "clock-ahead-deletes-at-once",
        "gateway/server/schedule.py",
        "if self._waits and (",
        "if False and (",
        "tests/gateway/server/test_schedule.py::"
        "test_a_server_that_starts_with_a_clock_far_ahead_waits_for_a_day_before_it_deletes[memory]",
    ),
    mutant(
        "requests-overtake",
        "gateway/server/rpc_socket.py",
        "self._order.enter() if METHODS[name].in_order else None",
        "None",
        "tests/gateway/server/test_order.py::"
        "test_messages_that_are_sent_without_waiting_are_stored_as_they_were_sent[postgres]",
    ),
    mutant(
        "names-are-different-sessions",
        "rpc/order.py",
        "self._names.update(names)",
        "_ = names",
        "tests/gateway/server/test_order.py::test_one_session_under_two_names_is_one_session[postgres]",
    ),
    Mutant(
        "failure-answered-as-done",
        (
            Change(
                "gateway/dispatch/method.py",
                '        log.exception("%s failed", name)\n        raise internal() from error\n',
                '        log.exception("%s failed", name)\n        return b"{}"\n',
            ),
            Change(
                "gateway/dispatch/method.py",
                "    except HithertoError as error:\n        raise failure_of(error) from error\n",
                "    except HithertoError as error:\n"
                '        if error.code == "store_error":\n            return b"{}"\n'
                "        raise failure_of(error) from error\n",
            ),
        ),
        "tests/gateway/methods/test_input.py::test_a_fault_of_ours_is_told_without_its_words",
    ),
    mutant(
        "policy-believes-the-clock",
        "gateway/server/schedule.py",
        "    return lambda: min(clock(), began + int((passed() - at) * 1_000))\n",
        "    return clock\n",
        "tests/gateway/server/test_schedule.py::test_a_clock_that_jumps_ahead_makes_nothing_old[memory-sessions are deleted]",
    ),
    mutant(
        "origin-unchecked",
        "gateway/transport/origin.py",
        "    if len(origins) > 1 or any(origin != same and origin not in known.origins for origin in origins):\n",
        "    if not same:\n",
        "tests/gateway/server/test_origins.py::test_a_page_of_another_origin_is_refused_everywhere",
    ),
    mutant(
        "host-unchecked",
        "gateway/transport/origin.py",
        "    if len(hosts) != 1 or not _is_ours(known, hosts[0], scope):\n",
        "    if len(hosts) != 1:\n",
        "tests/gateway/server/test_origins.py::test_a_name_that_is_not_ours_is_refused_everywhere",
    ),
    mutant(
        "one-feed-for-all-owners",
        "gateway/events/feeds.py",
        "who.owner",
        '""',
        "tests/gateway/events/test_subscriptions.py::test_nothing_of_another_owner_is_told",
    ),
    mutant(
        "scope-unchecked",
        "gateway/dispatch/method.py",
        "    if scope not in context.token.scopes:\n",
        "    if not scope:\n",
        "tests/gateway/methods/test_access.py::test_a_token_without_rights_learns_nothing[session.get]",
    ),
    mutant(
        "method-without-a-rule",
        "gateway/methods/__init__.py",
        'Method(discover, Params, Raw, "read", NOTHING)',
        'Method(discover, Params, Raw, "", NOTHING)',
        "tests/gateway/methods/test_access.py::"
        "test_every_method_has_a_scope_an_ownership_rule_and_a_sentence",
    ),
    Mutant(
        "export-passes-html",
        (
            Change("exports/sanitized_html.py", '{"html": False, "highlight": highlight}', '{"html": True}'),
            Change(
                "exports/sanitized_html.py",
                "    return nh3.clean(\n        html,",
                "    return html or nh3.clean(\n        html,",
            ),
        ),
        "tests/exports/test_html.py::test_a_hostile_text_does_nothing_wherever_it_stands",
    ),
    mutant(
        "fence-too-short",
        "exports/safe_markdown.py",
        'fence = "`" * max(3, _longest_run(text) + 1)',
        'fence = "`" * 3',
        "tests/exports/test_markdown.py::test_a_hostile_text_forges_nothing_wherever_it_stands",
    ),
    Mutant(
        "markdown-passes-html",
        (
            Change("exports/safe_markdown.py", r"[\\`*\[\]<~|]", r"[\\`*\[\]~|]"),
            Change("exports/safe_markdown.py", '{"html_block", "html_inline", "image"}', '{"image"}'),
        ),
        "tests/exports/test_markdown.py::test_a_hostile_text_forges_nothing_wherever_it_stands",
    ),
    mutant(
        "markdown-results-apart-from-their-calls",
        "exports/paired.py",
        "if not results or len(results) < len(entry.parts):",
        "if results or len(results) < len(entry.parts):",
        "tests/exports/test_markdown.py::test_results_stand_with_their_calls_and_a_speaker_has_one_heading",
    ),
    mutant(
        "html-outline-leads-nowhere",
        "exports/html.py",
        'href="#m{number}"',
        'href="#m0{number}"',
        "tests/exports/test_html.py::test_a_turn_is_a_prompt_one_line_that_unfolds_and_the_answer",
    ),
    mutant(
        "html-turn-waits-for-its-end",
        "exports/html.py",
        ">= MOST_STEPS else",
        ">= 10 * MOST_STEPS else",
        "tests/exports/test_html.py::test_a_turn_without_end_is_written_in_stretches",
    ),
    mutant(
        "turns-count-failures-as-edits",
        "gateway/page/render/transcript.py",
        "_changes_file(call) and not bad",
        "_changes_file(call) or bad",
        "tests/gateway/page/test_turns.py::"
        "test_what_was_done_is_one_line_that_unfolds_into_a_line_for_each_call",
    ),
    mutant(
        "turns-begin-without-their-prompt",
        "gateway/page/render/window.py",
        "    if given.before and request.after is None and not",
        "    if False and request.after is None and not",
        "tests/gateway/page/test_turns.py::"
        "test_a_turn_of_hundreds_of_steps_opens_with_its_prompt_and_is_read_in_parts",
    ),
    mutant(
        "changes-keep-what-was-taken-back",
        "edits/net.py",
        "if not any(piece.takes(hunk, edit) for piece in reversed(pieces)):",
        "if True:",
        "tests/gateway/page/test_changes.py::"
        "test_the_files_of_a_session_have_their_whole_difference_and_lead_to_its_messages",
    ),
    mutant(
        "page-unescaped",
        "gateway/page/templates.py",
        "autoescape=True",
        "autoescape=False",
        "tests/gateway/page/test_hostile_sessions.py::test_lists_and_searches_show_hostile_names_and_do_nothing",
    ),
    mutant(
        "days-of-the-list-in-another-zone",
        "gateway/page/list_query.py",
        "local = checked_zone(self.zone)",
        'local = checked_zone("UTC")',
        "tests/gateway/page/test_list.py::test_the_list_is_narrowed_to_days_where_one_is_and_sorted",
    ),
    mutant(
        "inbox-without-what-is-new",
        "gateway/page/views/inbox.py",
        "(row.unread or never)",
        "never",
        "tests/gateway/page/test_inbox.py::"
        "test_what_waits_runs_failed_or_is_new_is_in_the_inbox_and_is_answered_there",
    ),
    mutant(
        "page-without-its-policy",
        "gateway/page/templates.py",
        "b\"default-src 'none'; script-src 'self';",
        "b\"script-src * 'unsafe-inline';",
        "tests/gateway/server/test_access.py::test_the_first_page_runs_nothing_of_others",
    ),
    mutant(
        "slow-code-highlighted-all-the-same",
        "presentation/effort.py",
        "        if self.part is not None:\n            raise _TooSlow\n",
        "        return\n",
        "tests/gateway/page/test_bounded_work.py::test_texts_that_take_long_to_compare_are_shown_as_old_and_new",
    ),
    mutant(
        "export-of-unbounded-effort",
        "gateway/server/state.py",
        "            files=partial(self.workers.make, caller.who.owner),\n",
        "",
        "tests/gateway/page/test_bounded_work.py::"
        "test_an_export_that_takes_long_has_the_rest_as_plain_text[html]",
    ),
    mutant(
        "tool-called-for-nobody",
        "gateway/app.py",
        "await unless_left(receive, server.serve_request(recall, scope, _again(body), send))",
        "await server.serve_request(recall, scope, _again(body), send)",
        "tests/gateway/server/test_in_flight.py::test_a_call_of_a_tool_ends_when_its_reader_leaves",
    ),
    mutant(
        "closing-waits-for-others",
        "stores/sqlite/search_index.py",
        "            and (self._close_by is None or now < self._close_by)\n",
        "",
        "tests/gateway/server/test_in_flight.py::"
        "test_a_signal_ends_the_server_whatever_is_being_made[search_words]",
    ),
    mutant(
        "answers-unbounded-in-sum",
        "gateway/transport/limits.py",
        "not self.total or self.total + size <= self._most",
        "True",
        "tests/gateway/server/test_in_flight.py::test_long_answers_are_bounded_for_each_token_and_in_sum",
    ),
    mutant(
        "page-made-for-nobody",
        "gateway/transport/responses.py",
        "        return work.result() if work.done() else None\n",
        "        return await work\n",
        "tests/gateway/page/test_bounded_work.py::test_the_work_ends_when_its_reader_leaves",
    ),
    mutant(
        "search-on-the-event-loop",
        "stores/sqlite/store.py",
        "            return self._read(work, None)\n",
        "            return self._read(work, self._index)\n",
        "tests/gateway/server/test_searches.py::test_nobody_waits_for_the_search_of_another",
    ),
    mutant(
        "search-without-a-limit",
        "stores/sqlite/search_index.py",
        "        db.set_progress_handler(limit, STEPS)\n",
        "        db.set_progress_handler(None)\n",
        "tests/gateway/server/test_searches.py::test_a_search_that_takes_too_long_says_so",
    ),
    mutant(
        "half-sent-bodies-uncounted",
        "gateway/transport/limits.py",
        "        if self.total + size > self._most or self._bytes[token] + size > self._most_each:\n",
        "        if size < 0:\n",
        "tests/gateway/server/test_limits.py::test_half_sent_bodies_are_bounded_for_each_token_and_in_sum[/rpc]",
    ),
    mutant(
        "cookie-from-anywhere",
        "gateway/auth/cookies.py",
        "held = held_pass(scope) if is_ours(scope) or is_opened(scope) else None",
        "held = held_pass(scope)",
        "tests/gateway/page/test_signin.py::test_the_cookie_alone_changes_nothing",
    ),
    mutant(
        "revocation-unnoticed",
        "gateway/auth/tokens.py",
        "        if revoked != self._looked_at:\n",
        "        if revoked is None:\n",
        "tests/gateway/server/test_access.py::test_a_request_after_the_revocation_is_not_answered",
    ),
    mutant(
        "history-tells-secrets",
        "recall/tools.py",
        "    clean = redact(looked_at, Counter())\n",
        "    clean = looked_at\n",
        "tests/recall/test_server.py::test_secrets_are_left_out_everywhere",
    ),
    mutant(
        "export-tells-secrets",
        "exports/redaction.py",
        "        return redact_value(value, seen)\n",
        "        return value\n",
        "tests/gateway/methods/test_methods.py::test_secrets_leave_only_with_the_right_to_them",
    ),
    mutant(
        "answers-piled-up",
        "gateway/transport/limits.py",
        "        while size and not self._has_room(token, size):\n",
        "        while False:\n",
        "tests/gateway/events/test_subscriptions.py::test_long_answers_that_are_not_read_are_not_piled_up",
    ),
)
