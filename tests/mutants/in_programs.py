"""Breakages of the agent, its tools, the sources, the command line, here and at a server, and the SDK."""

from __future__ import annotations

from tests.mutants.definitions import Change, Mutant, mutant

MUTANTS = (
    mutant(
        "transcript-line-begun-without-room",
        "claude/foreign_files.py",
        "    reserve(descriptor, size, len(data))\n",
        "",
        "tests/claude/test_edit.py::test_a_line_that_there_is_no_room_for_is_not_begun",
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
        "tests/engines/tools/test_roots.py::test_a_path_that_leads_out_is_refused_for_reading_and_for_writing",
    ),
    mutant(
        "loopback-is-public",
        "engines/mcp/public_addresses.py",
        "    return found.is_global\n",
        "    return found.is_global or found.is_loopback\n",
        "tests/engines/mcp/test_public_addresses.py::test_whatever_is_not_public_is_not",
    ),
    mutant(
        "led-to-loopback",
        "engines/mcp/http.py",
        "not all(map(self._allowed, addresses))",
        'not all(self._allowed(each) or each.startswith("127.") for each in addresses)',
        "tests/engines/mcp/test_public_addresses.py::test_a_redirect_does_not_lead_out",
    ),
    mutant(
        "programs-for-everybody",
        "engines/mcp/servers.py",
        "    if not local:\n",
        "    if not server.name:\n",
        "tests/engines/mcp/test_servers.py::test_no_program_is_started_for_a_caller_from_outside",
    ),
    mutant(
        "secret-kinds-not-looked-for",
        "secrets/services.py",
        "return Service(name, tuple(beginnings.split()), re.compile(rest))",
        'return Service(name, tuple(beginnings.split()), re.compile(rest + "(?!)"))',
        "tests/secrets/test_secrets.py::test_a_secret_is_found_wherever_it_stands",
    ),
    mutant(
        "server-looks-into-folders",
        "acp/agent/open.py",
        "here = connection.offer.local and connection.who == LOCAL",
        "here = True",
        "tests/gateway/server/test_agent.py::test_the_server_looks_into_no_folder_that_a_caller_names",
    ),
    mutant(
        "mcp-group-left-behind",
        "engines/mcp/stdio.py",
        "            os.killpg(self._transport.get_pid(), number)\n            while",
        "            os.kill(self._transport.get_pid(), number)\n            while",
        "tests/engines/mcp/test_servers.py::test_all_of_the_process_group_is_ended",
    ),
    mutant(
        "links-followed-by-tools",
        "engines/tools/roots.py",
        "FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC",
        "FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC",
        "tests/engines/tools/test_roots.py::test_a_swap_before_any_step_gets_nothing_from_outside_and_nothing_out",
    ),
    mutant(
        "links-followed-among-transcripts",
        "claude/paths.py",
        "flags | os.O_NOFOLLOW | os.O_NONBLOCK",
        "flags | os.O_NONBLOCK",
        "tests/sources/claude/test_files.py::test_a_link_in_the_place_of_a_transcript_is_not_opened",
    ),
    mutant(
        "unknown-records-dropped",
        "sources/codex/conversation.py",
        "        self.keep_unknown(self.record.kind, self.record.payload())\n",
        "        return\n",
        "tests/sources/test_census.py::test_every_record_is_shown_or_left_out_by_name_and_every_word_is_found[codex]",
    ),
    mutant(
        "rolled-back-turns-dropped",
        "sources/codex/conversation.py",
        "                self.rolled_back.append(RolledBack(after, self.entries[place:], compactions))\n",
        "                pass\n",
        "tests/sources/test_census.py::test_every_record_is_shown_or_left_out_by_name_and_every_word_is_found[codex]",
    ),
    mutant(
        "terminal-sequences-printed",
        "clean_text.py",
        '    text = _BREAKS.sub("\\n", _SEQUENCES.sub("", text))\n    return _SURROGATES.sub("\\N{REPLACEMENT CHARACTER}", _UNSAFE.sub("", text))',
        "    return text",
        "tests/cli/test_output.py::test_hostile_content_reaches_no_terminal",
    ),
    Mutant(
        "unchanged-files-parsed",
        (
            Change(
                "sources/sync/sync.py",
                "zip(found, stamps, strict=True) if stamp != encode(each.stamp)\n",
                "zip(found, stamps, strict=True) if stamp or each.stamp\n",
            ),
            Change("sources/sync/sync.py", "not _is_same(stamp, each.stamp, there)\n", "each.stamp\n"),
        ),
        "tests/sources/sync/test_sync.py::test_a_second_sync_parses_nothing",
    ),
    mutant(
        "terminal-replaced-by-text",
        "acp/protocol/updates.py",
        '                    fields["content"] = [terminal]  # text would take its place\n',
        "                    pass\n",
        "tests/acp/agent/test_terminals.py::test_a_command_of_a_tool_is_embedded_in_its_call_as_the_terminal_of_the_client",
    ),
    mutant(
        "proxy-drops-unknown-members",
        "acp/proxy/frames.py",
        '    return {**members, "params": Raw(join_members({**params, "sessionId": session_id}))}',
        '    return {**members, "params": Raw(join_members({"sessionId": session_id, **{k: v for k, v in params.items() if k in ("update", "prompt")}}))}',
        "tests/acp/proxy/test_relay.py::test_unknown_updates_fields_and_methods_pass_both_ways",
    ),
    mutant(
        "torn-tail-not-sealed",
        "claude/foreign_files.py",
        '    data = line if _ends_line(descriptor, size) else b"\\n" + line\n',
        "    data = line\n",
        "tests/claude/test_edit.py::test_a_torn_tail_is_sealed_and_stays_as_it_was",
    ),
    mutant(
        "prune-applies-unasked",
        "cli/commands/prune.py",
        "dry_run=not apply)",
        "dry_run=False)",
        "tests/cli/test_commands.py::test_prune_only_shows_until_it_is_told_to_apply",
    ),
    mutant(
        "token-taken-along-by-a-redirect",
        "remote/connection.py",
        "        return exc\n",
        "        return super().process_redirect(exc)\n",
        "tests/cli/test_remote.py::test_a_redirect_is_not_followed",
    ),
    mutant(
        "token-sent-in-the-clear",
        "remote/address.py",
        "    if not (address.tls or address.on_this_machine):\n",
        "    if not address.host:\n",
        "tests/cli/test_remote.py::test_no_token_goes_anywhere_in_the_clear",
    ),
    mutant(
        "refusal-of-a-tool-unheard",
        "sdk/permission.py",
        "return Verdict(allowed=False, reason=",
        "return Verdict(allowed=True, reason=",
        "tests/sdk/test_permission.py::test_every_form_of_answer_is_understood",
    ),
    mutant(
        "data-folder-open-to-others",
        "settings.py",
        "WRITTEN_BY_OTHERS = 0o022",
        "WRITTEN_BY_OTHERS = 0",
        "tests/values/test_settings.py::test_a_data_folder_that_others_can_write_to_is_refused_with_the_command_that_mends_it",
    ),
    mutant(
        "data-folder-of-another-user",
        "settings.py",
        "    if user != ROOT and found.st_uid not in (user, ROOT):\n",
        "    if user != ROOT and found.st_uid < 0:\n",
        "tests/values/test_settings.py::test_a_data_folder_of_another_user_is_refused_and_roots_is_not",
    ),
)
