"""What was used and cost, as the command line tells it."""

from __future__ import annotations

import csv
import io
import json

from msgspec.structs import replace

from hitherto.model import LOCAL, Draft, Entry, Text, ToolResult, Usage
from hitherto.service import Imported, Sessions
from tests.cli.shell import Shell

NOON = 1_748_865_600_000
"""2025-06-02 12:00 UTC."""
JUNE = ("--since", "2025-06-01", "--until", "2025-06-30")


def spend(shell: Shell) -> None:
    async def work(sessions: Sessions) -> None:
        session = await sessions.create(LOCAL, title="Paid", cwd="/src/app", project="ada/app")
        told = Usage(input=1_000, output=100, cache_read=600, cost=0.5)
        drafts = [Draft(role="assistant", parts=(Text(text="a"),), at=NOON, model="gpt-5", usage=told)]
        await sessions.append(LOCAL, session.id, drafts)
        guessed = Usage(input=1_000, output=100, request="msg_1 req_1")
        parts, model = (Text(text="b"),), "claude-sonnet-4-5"
        entry = Entry(id="b", at=NOON, role="assistant", parts=parts, model=model, usage=guessed)
        given = Imported(id="claude:s1", source="claude", created_at=NOON, updated_at=NOON, title="Guessed")
        await sessions.transfer.sync(LOCAL, given, [entry])

    shell.inside(work)


def test_usage_is_told_by_day_and_by_what_it_was_for(shell: Shell) -> None:
    spend(shell)
    (line,) = shell.ok("usage", *JUNE).lines
    assert line.split("\t")[:4] == ["2025-06-02", "", "2", "2"]
    by_agent = shell.ok("usage", "month", "--by", "agent", *JUNE).lines
    assert [each.split("\t")[:2] for each in by_agent] == [["2025-06", ""], ["2025-06", "claude"]]
    found = shell.ok("usage", "--by", "session", *JUNE, "--json").json
    assert found["complete"] is True
    assert [(row["title"], row["reported_usd"], row["estimated_usd"]) for row in found["rows"]] == [
        ("Paid", 0.5, 0.0),
        ("Guessed", 0.0, 0.0045),
    ]
    assert found["total"]["cost_usd"] == 0.5045
    only = shell.ok("usage", "--by", "project", "--project", "app", *JUNE, "--json").json
    assert [row["name"] for row in only["rows"]] == ["ada/app"]


def test_usage_can_be_read_by_a_spreadsheet(shell: Shell) -> None:
    spend(shell)
    rows = list(csv.DictReader(io.StringIO(shell.ok("usage", "week", *JUNE, "--csv").out)))
    assert [(row["period"], row["requests"], row["cache_read_tokens"]) for row in rows] == [
        ("2025-W23", "2", "600")
    ]
    assert shell.invoke("usage", "--csv", "--json").code == 2
    assert shell.invoke("usage", "year").code == 2
    assert shell.invoke("usage", "--since", "soon").code == 2
    assert shell.invoke("usage", "--since", "2025-07-01", "--until", "2025-06-01").code == 2


def test_a_status_bar_gets_one_line(shell: Shell) -> None:
    spend(shell)
    said = shell.run("statusline", stdin=json.dumps({"session_id": "s1"}).encode()).out
    assert said == "≈<$0.01 · context 0% · today $0.00\n"
    unknown = {"session_id": "s2", "cost": {"total_cost_usd": 1.25}}
    assert shell.run("statusline", stdin=json.dumps(unknown).encode()).out == "$1.25 · today $0.00\n"
    assert shell.run("statusline", stdin=b"{not json").out == "today $0.00\n"


def test_projects_are_listed_renamed_and_merged(shell: Shell) -> None:
    spend(shell)
    assert shell.ok("project").out == "ada/app\t1\n"
    done = shell.ok("project", "app", "--rename", "ada/engine")
    assert "ada/app is ada/engine now: 1 session." in done.err
    assert shell.ok("project", "engine", "--json").json == {
        "projects": [{"name": "ada/engine", "sessions": 1}]
    }
    assert shell.invoke("project", "nothing", "--rename", "x").code == 2
    assert shell.invoke("project", "--rename", "x").code == 2


def test_list_and_show_tell_what_each_session_and_turn_used(shell: Shell) -> None:
    spend(shell)

    async def talk(sessions: Sessions) -> str:
        session = await sessions.create(LOCAL, title="Turns")
        failed = Draft(role="tool", parts=(ToolResult(id="c", is_error=True),), at=NOON + 2_000)
        told = Usage(input=150_000, output=1_000, cache_read=90_000, cache_write=5_000, cost=0.25)
        answer = Draft(role="assistant", parts=(Text(text="A."),), model="claude-sonnet-4-5", usage=told)
        prompt = Draft(role="user", parts=(Text(text="Why?"),), at=NOON)
        drafts = [prompt, replace(answer, at=NOON + 1_000), failed, replace(answer, at=NOON + 41_000)]
        await sessions.append(LOCAL, session.id, [*drafts, replace(prompt, at=NOON + 60_000)])
        return session.id

    turns = shell.inside(talk)
    rows = {line.split("\t")[4]: line.split("\t") for line in shell.ok("list").lines}
    assert rows["Turns"][9:] == [
        "5", "151005", "200000", "300000", "2000", "180000", "10000", "0.500000", "41000", "1"
    ]  # fmt: skip
    assert rows["Guessed"][9:12] == ["1", "1100", "200000"]
    found = {each["title"]: each["usage"] for each in shell.ok("list", "--json").json["sessions"]}
    assert (found["Guessed"]["cost_usd"], found["Guessed"]["cost_status"]) == (0.0045, "estimated")
    assert (found["Turns"]["messages"], found["Turns"]["tool_failures"], found["Turns"]["failed"]) == (
        5,
        1,
        False,
    )
    table = shell.terminal("list", columns=140).out
    for told in ("≈151k/200k", "$0.50", "≈<$0.01"):
        assert told in table
    shown = shell.ok("show", turns).out
    for told in (
        "messages: 5 in the conversation, 5 in the context\n",
        "context: ≈151k of 200k tokens (75%)\n",
        "tokens: 300k in (180k cached, 10k written to the cache), 2.0k out\n",
        "cost: $0.50\n",
        "tool failures: 1\n",
        "── 4 messages · 1 tool failure · 41 s · 300k in (180k cached, 10k written to the cache), 2.0k out · $0.50 ──\n",
    ):
        assert told in shown
    usage = shell.ok("show", turns, "--json").json["usage"]
    assert [(turn["messages"], turn["cost_usd"], turn["failed"]) for turn in usage["turns"]] == [
        (4, 0.5, False),
        (1, None, False),
    ]
