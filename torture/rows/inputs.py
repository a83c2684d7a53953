"""Bad inputs: whatever is sent, from wherever and by whomever, nothing is done that may not be."""

from __future__ import annotations

from tests.unit.hostile import PAYLOADS
from torture import (
    fuzzers,
    isolation,
    limits,
    paths,
    permissions,
    places,
    rights,
    searches,
    secrets,
    spawning,
    suites,
)
from torture.row import Row
from torture.trying import broken, whole

ROWS = (
    Row(
        key="S1",
        promise="A page of another site reaches nothing, under whatever name and origin",
        target="20 origins × 10 hosts × every route: 100 % refused",
        how="Every route of the application's own table, sockets included, is asked with a good token under each pair of"
        " a Host and an Origin: 421 or 403 with an empty body, and our own page passes.",
        run=whole(places.tried),
        control=broken(places.tried, "origin-unchecked"),
        broken="a server that does not look at Origin",
    ),
    Row(
        key="S2",
        promise="Nobody does what their token does not allow",
        target="every method × {none, wrong, revoked, other principal, URL token, declared scopes}: 0 bypass; a method"
        " without a rule fails the build",
        how="Every method of the gateway's own table over HTTP and on sockets, every method of the agent for editors, and"
        " every other route, each asked without a token, with a wrong one, a revoked one, one in the address, as somebody"
        " else, and with rights that are only claimed. Foreign is compared with missing byte for byte.",
        run=whole(rights.tried),
        control=broken(rights.tried, "scope-unchecked"),
        broken="a server that does not look at a token's rights",
    ),
    Row(
        key="S3",
        promise="Nothing of one owner is ever seen by another",
        target="3 principals, 50,000 Hypothesis steps over all methods + 10,000 tampered cursors: 0 leaks, foreign = absent"
        " byte for byte",
        how="Three owners of one server on SQLite ask, as Hypothesis chooses, every method of the gateway about sessions,"
        " messages and checkpoints of their own, of each other and of nobody; every answer is searched for ids and words of"
        " the others, and each about something foreign is asked again about something missing. Then cursors that are"
        " flipped, cut, spliced, made up, or another's.",
        run=whole(isolation.tried),
        # With their checksums, the sessions of others would be taken for damaged ones of one's own, and not be told.
        control=broken(
            isolation.tried,
            "fork-without-owner-sqlite",
            "altered-session-served",
            "cursor-signature-ignored",
        ),
        broken="a store that finds a session by its id alone, whatever its checksum, and cursors without a signature",
    ),
    Row(
        key="S4",
        promise="What a transcript says runs nothing and loads nothing",
        target="200 payloads × 8 fields × {page, HTML, Markdown}: 0 executions, 0 outside requests, in Chromium",
        how=f"{len(PAYLOADS)} payloads in every field of a session and of its messages (id, title, tags, folder, project, branch, model,"
        " agent, channel, texts, thoughts, tools with their input and output, files, plans): the page and the HTML file in"
        " Chromium with hooked alerts, requests and errors, and every HTML and Markdown file taken apart.",
        run=suites.passing(
            "tests/page/test_hostile.py",
            "tests/unit/test_exports_html.py",
            "tests/unit/test_exports_markdown.py",
            figure=f"0 executions and 0 outside requests of {len(PAYLOADS)} payloads in more than 8 fields each;"
            " {passed} tests",
            sums={"inputs": len(PAYLOADS) * 8 * 3},
        ),
        control=suites.breakages("page-unescaped", "export-passes-html", "fence-too-short"),
        broken="a page without escaping, an export that passes HTML through, a fence that a text can end",
        in_tests=False,
    ),
    Row(
        key="S5",
        promise="No path and no link leads out of where a session may read and write",
        target="500 names + 1,000 symlink swap races: 0 opens outside root, 0 hangs",
        how="Names to each tool of a session, and as sessions, folders, cursors and routes over the gateway; links, pipes and"
        " devices among the transcripts of every agent; then tools and syncs while another process lets a folder or a file"
        " and a link or a pipe change places without a pause. The system (inotify) and the interpreter (audit events) say"
        " what was opened.",
        run=whole(paths.tried),
        control=broken(paths.tried, "walk-follows-links"),
        broken="tools that follow links",
    ),
    Row(
        key="S6",
        promise="Nothing that is sent or brought in crashes a door or is answered with an internal error",
        target="2,000 fixed hostile frames + 10 minutes of atheris on parser, framing, cursor, importer: 0 crashes, 0 internal"
        " errors, RSS +< 50 MB",
        how="The frames go to `recollect serve` over HTTP and on both kinds of socket, and to `recollect acp` on its standard"
        " input, with a good request after every few. Then coverage-guided fuzzing of the parser, the framing, every method,"
        " cursors, the importer, the files of every other agent, queries and the search for secrets.",
        run=whole(fuzzers.tried),
        control=broken(fuzzers.tried, "deep-frame-uncaught"),
        broken="a parser that does not expect deep nesting",
        needs=(fuzzers.ATHERIS,),
    ),
    Row(
        key="S7",
        promise="Any text may be searched for",
        target="10,000 fuzzed queries on SQLite and on PostgreSQL: 0 engine errors, none above 200 ms (of CPU, since the"
        " machine is shared)",
        how="Words of every query language, quotes, wildcards, operators, injections, surrogates, all of Unicode and thousands"
        " of words at once, to every method of the gateway that searches; the CPU of the server and of PostgreSQL is read from"
        " the system before and after each.",
        run=whole(searches.tried),
        control=broken(searches.tried, "search-words-as-typed"),
        broken="words that are put into a query as they were typed",
    ),
    Row(
        key="S8",
        promise="Every published limit is one",
        target="each published limit + 1 gives its documented code",
        how="The tables of limits in docs/storage.md and docs/serving.md are read, and each row is tried at its limit and one"
        " beyond: by the SDK, over the gateway's methods, over HTTP and on sockets. A row without a trial fails.",
        run=whole(limits.tried),
        control=broken(limits.tried, "lengths-unchecked"),
        broken="a program that measures texts too generously",
    ),
    Row(
        key="S9",
        promise="What is shared holds no secret, and our own tokens are nowhere",
        target="recall >= 95 % of 40 kinds, < 1 % false hits on code; own tokens 0 anywhere (logs, URLs, errors, exports)",
        how="Secrets drawn by their form, in sentences, code, JSON and base64, are said over the gateway and exported as Markdown"
        " and HTML; files of the standard library and of packages are searched for secrets that are none; tokens are used"
        " rightly and wrongly on every route, and looked for in all answers, the log, the store's files and the process.",
        run=whole(secrets.tried),
        control=broken(secrets.tried, "secret-kinds-not-looked-for"),
        broken="a program that does not look for half of the kinds",
    ),
    Row(
        key="S10",
        promise="Nobody from outside, and no file of a project, starts a program or reaches a private address",
        target="0 processes from unprivileged requests or project files; 60 address spellings + redirect + rebinding: 0 private"
        " sockets",
        how="`recollect serve` and `recollect acp`, whose every start of a program and every connection the interpreter notes:"
        " somebody without the right names programs in `session/new`, `load`, `resume` and `fork`; sessions are opened in a"
        " project full of files that ask for programs; then servers at every spelling of private addresses, over both"
        " transports, with a listener that would hear them; redirects of every kind, and names whose address changes.",
        run=whole(spawning.tried),
        control=broken(spawning.tried, "programs-for-everybody", "loopback-is-public", "led-to-loopback"),
        broken="a server that starts programs for everybody, takes loopback for a public address and is led there",
        in_tests=False,
    ),
    Row(
        key="S11",
        promise="What is kept is for its user alone, whatever the mask",
        target="umask 000 start: 0 files or dirs open to others",
        how="`recollect serve`, `acp`, `import`, `backup`, `sync`, `token`, `export` in every form, `doctor` and others, started"
        " with a mask of 000; modes of all that is there while the server runs and afterwards.",
        run=whole(permissions.tried),
        control=broken(permissions.tried, "store-open-to-others"),
        broken="a store whose files are made as the mask says",
    ),
)
