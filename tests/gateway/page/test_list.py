"""The list as somebody uses it: found, narrowed, renamed, tagged, and moving by itself."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.async_api import expect

from hitherto.ids import now_ms
from hitherto.model import Draft, Entry, Principal, Text, ToolCall, ToolResult, Usage
from hitherto.service import Imported, Sessions
from hitherto.values.days import DAY_MS
from tests.gateway.page.conftest import Enter
from tests.gateway.page.visitor import Visitor

PHONE = {"width": 360, "height": 740}


def say(text: str, role: str = "user") -> Draft:
    return Draft(role=role, parts=(Text(text=text),))  # type: ignore[arg-type]  # a role by its name


async def begun(kept: Sessions, who: Principal, title: str, *texts: str, **fields: object) -> str:
    session = await kept.create(who, title=title, **fields)  # type: ignore[arg-type]  # as `create` has them
    if texts:
        await kept.append(who, session.id, [say(text) for text in texts])
    return session.id


async def titles(visitor: Visitor) -> list[str]:
    return await visitor.page.locator(".row .name").all_inner_texts()


async def test_an_empty_list_teaches(enter: Enter) -> None:
    visitor = await enter()
    for command in ("hitherto sync --watch", "hitherto acp", "hitherto chat"):
        await expect(visitor.page.get_by_text(command)).to_be_visible()


async def test_a_row_says_what_is_known(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made = await begun(kept, ann, "Fix the parser", "a", "b", cwd="/home/ann/code/parser", tags=("work",))
    given = {"file_path": "/home/ann/code/parser/a.py", "old_string": "", "new_string": "one\ntwo"}
    call = ToolCall(id="c1", name="edit", input=given)
    await kept.append(ann, made, Draft(role="assistant", parts=(call,)))
    await kept.catalog.set_status(ann, made, "running")
    visitor = await enter()
    row = visitor.page.locator(".row")
    for told in ("Fix the parser", "code/parser", "work", "running", "now", "+2 −0 · 1 file"):
        await expect(row).to_contain_text(told)
    await expect(row.get_by_role("img", name="Hitherto")).to_have_text("h")
    await expect(row.locator(".name a")).to_have_attribute("title", re.compile("3 messages"))
    await expect(row).to_have_attribute("data-day", "Today")
    await visitor.page.get_by_role("link", name="Fix the parser").click()
    await expect(visitor.page.locator(".below")).to_contain_text("+2 −0 · 1 file")


async def test_what_is_said_elsewhere_moves_its_row_to_the_top(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    first = await begun(kept, ann, "First", "hello")
    await begun(kept, ann, "Second", "hello")
    visitor = await enter()
    assert await titles(visitor) == ["Second", "First"]
    await kept.append(ann, first, say("more"))
    await expect(visitor.page.locator(".row .name").first).to_have_text("First")
    await expect(visitor.page.locator(".row .name a").first).to_have_attribute(
        "title", re.compile("2 messages")
    )
    await begun(kept, ann, "Third")
    await expect(visitor.page.locator(".row .name").first).to_have_text("Third")
    await kept.delete(ann, first)
    await expect(visitor.page.get_by_text("First", exact=True)).to_have_count(0)


async def test_the_first_session_takes_the_place_of_the_lesson(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    visitor = await enter()
    await begun(kept, ann, "The first")
    await expect(visitor.page.get_by_role("link", name="The first")).to_be_visible()
    await expect(visitor.page.locator("#nothing")).to_have_count(0)


async def test_search_finds_as_one_types_and_leads_to_the_message(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await begun(kept, ann, "About birds", "The heron stands still.", "A heron again.", "and one more heron")
    await begun(kept, ann, "About trees", "The oak is old.")
    visitor = await enter()
    await visitor.page.keyboard.press("/")
    await visitor.page.keyboard.type("hero")
    await expect(visitor.page.locator(".row")).to_have_count(1)
    await expect(visitor.page.locator(".found mark")).to_have_text(["heron"])
    await expect(visitor.page.locator(".found")).to_contain_text("2 more")
    await expect(visitor.page).to_have_url(f"{visitor.base}/?q=hero")
    await visitor.page.reload()
    await visitor.page.get_by_role("link", name="About birds").click()
    await expect(visitor.page.locator(".entry.target")).to_contain_text("and one more heron")


async def test_search_knows_the_operators_and_says_when_nothing_is_found(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await begun(kept, ann, "One", "needle", tags=("red",))
    await begun(kept, ann, "Two", "needle", tags=("blue",))
    visitor = await enter()
    await visitor.page.get_by_role("searchbox").fill("needle tag:blue")
    await expect(visitor.page.locator(".row .name")).to_have_text(["Two"])
    await visitor.page.get_by_role("searchbox").fill("nowhere")
    await expect(visitor.page.get_by_text("No sessions found")).to_be_visible()
    await visitor.page.get_by_role("searchbox").fill("")
    await expect(visitor.page.locator(".row")).to_have_count(2)


async def test_facets_say_how_many_there_are_and_are_in_the_address(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    await begun(kept, ann, "Tagged", tags=("red",), agent_id="coder", project="github.com/ada/engine")
    away = await begun(kept, ann, "Archived one")
    await kept.archive(ann, away)
    visitor = await enter()
    page = visitor.page
    facets = page.get_by_role("navigation", name="Filters")
    assert await titles(visitor) == ["Tagged"]
    for told in ("All 1", "Pinned 0", "Archived 1", "coder 1", "ada/engine 1", "red 1"):
        await expect(facets.get_by_role("listitem").filter(has_text=told)).to_be_visible()
    await facets.get_by_role("link", name="Archived").click()
    await expect(page.locator(".row .name")).to_have_text(["Archived one"])
    await expect(page).to_have_url(f"{visitor.base}/?archived=1")
    await facets.get_by_role("link", name="All", exact=True).click()
    for name in ("coder", "ada/engine", "red"):
        await facets.get_by_role("link", name=name, exact=True).click()
        await expect(facets.get_by_role("link", name=name, exact=True)).to_have_attribute(
            "aria-current", "true"
        )
        await expect(page.locator(".row .name")).to_have_text(["Tagged"])
    await expect(page).to_have_url(f"{visitor.base}/?agent=coder&project=github.com%2Fada%2Fengine&tag=red")
    await begun(kept, ann, "Another", "The heron", tags=("red",), project="github.com/ada/web")
    await facets.get_by_role("link", name="coder", exact=True).click()
    # Of projects, any that is chosen will do: their numbers are as if none were.
    await expect(facets.get_by_role("listitem").filter(has_text="red 1")).to_be_visible()
    await facets.get_by_role("link", name="ada/web", exact=True).click()
    await expect(page.locator(".row .name")).to_have_text(["Another", "Tagged"])
    both = "project=github.com%2Fada%2Fengine&project=github.com%2Fada%2Fweb&tag=red"
    await expect(page).to_have_url(f"{visitor.base}/?{both}")
    await expect(facets.get_by_role("listitem").filter(has_text="red 2")).to_be_visible()
    await page.get_by_role("searchbox").fill("heron")
    await expect(page.locator(".row .name")).to_have_text(["Another"])
    await expect(page.get_by_text("1 hit in 1 session")).to_be_visible()
    for told in ("All 1", "ada/web 1", "red 1"):
        await expect(facets.get_by_role("listitem").filter(has_text=told)).to_be_visible()
    await page.get_by_role("searchbox").fill("heron projekt:web")
    await expect(page.get_by_role("alert")).to_contain_text("has no field projekt: it has after:")
    await page.get_by_role("searchbox").fill("")
    await expect(page.locator(".row")).to_have_count(2)
    await facets.get_by_role("link", name="Running").click()
    await expect(page.get_by_text("No sessions found")).to_be_visible()


async def test_a_row_says_project_branch_and_agent(enter: Enter, kept: Sessions, ann: Principal) -> None:
    taken = Imported(
        id="claude:one",
        source="claude",
        created_at=1,
        updated_at=2,
        title="Theirs",
        project="github.com/ada/engine",
        branch="fix/parser",
    )
    said = [Entry(id="a", at=2, role="user", parts=(Text(text="hello"),))]
    await kept.transfer.sync(ann, taken, said)
    for number in range(2):
        below = Imported(
            id=f"claude:one:agent-{number}",
            source="claude",
            created_at=1,
            updated_at=2,
            title="A subagent",
            parent="claude:one",
        )
        await kept.transfer.sync(ann, below, said)
    await begun(kept, ann, "Ours")
    visitor = await enter()
    row = visitor.page.locator(".row", has_text="Theirs")
    for told in ("ada/engine", "fix/parser", "2 agents"):
        await expect(row).to_contain_text(told)
    await expect(row.get_by_role("img", name="Claude Code")).to_have_text("CC")
    await row.get_by_role("link", name="ada/engine").click()
    await expect(visitor.page.locator(".row .name")).to_have_text(["Theirs"])
    facets = visitor.page.get_by_role("navigation", name="Filters")
    await facets.get_by_role("link", name="Claude Code").first.click()
    await expect(visitor.page).to_have_url(f"{visitor.base}/?agent=claude&project=github.com%2Fada%2Fengine")
    await visitor.go("/?source=hitherto")
    await expect(visitor.page.locator(".row .name")).to_have_text(["Ours"])


async def test_scrolling_brings_all_rows_once_and_forks_to_their_origin(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    ids = [(await kept.create(ann, title=f"Number {number}")).id for number in range(120)]
    early = await kept.fork(ann, ids[0])
    for number in range(120, 180):
        await kept.create(ann, title=f"Number {number}")
    late = await kept.fork(ann, ids[0])
    for fork, title in ((early, "Early fork"), (late, "Late fork")):
        await kept.rename(ann, fork.id, title)
    visitor = await enter()
    rows = visitor.page.locator(".row")
    await expect(rows.locator(".name").first).to_have_text("Number 0")
    await visitor.scrolled_through("#following", ".row")
    shown = await titles(visitor)
    assert sorted(shown) == sorted(
        [*(f"Number {number}" for number in range(180)), "Early fork", "Late fork"]
    )
    assert shown[:3] == ["Number 0", "Early fork", "Late fork"]  # of the others, some are of one millisecond


async def test_a_name_is_changed_where_it_stands(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made = await begun(kept, ann, "Old name")
    visitor = await enter()
    await visitor.page.keyboard.press("j")
    await visitor.page.keyboard.press("e")
    field = visitor.page.get_by_role("textbox", name="Title")
    await expect(field).to_have_value("Old name")
    await field.press("Escape")
    await expect(visitor.page.get_by_role("link", name="Old name")).to_be_focused()
    await visitor.page.locator(".row").hover()
    await visitor.page.get_by_role("button", name="Rename").click()
    await field.fill("New <name>")
    await field.press("Enter")
    await expect(visitor.page.get_by_role("link", name="New <name>")).to_be_visible()
    assert (await kept.get(ann, made)).title == "New <name>"


async def test_tags_are_added_and_removed_where_they_stand(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Tagged", tags=("old",))
    visitor = await enter()
    await visitor.page.get_by_role("link", name="Tagged").focus()
    await visitor.page.keyboard.press("t")
    await visitor.page.get_by_role("textbox", name="New tag").fill("new & shiny")
    await visitor.page.keyboard.press("Enter")
    await expect(visitor.page.locator(".tag")).to_have_count(2)
    assert (await kept.get(ann, made)).tags == ("new & shiny", "old")
    await visitor.page.get_by_role("button", name="Remove the tag old").click()
    await expect(visitor.page.locator(".tag")).to_have_count(1)
    assert (await kept.get(ann, made)).tags == ("new & shiny",)


async def test_nobody_sees_what_is_somebody_elses(enter: Enter, kept: Sessions, ann: Principal) -> None:
    bob = Principal(owner=f"not-{ann.owner}")
    foreign = await begun(kept, bob, "Bob's own", "secret heron")
    visitor = await enter()
    assert await titles(visitor) == []
    await visitor.go("/?q=heron")
    await expect(visitor.page.get_by_text("No sessions found")).to_be_visible()
    replies = [await visitor.page.goto(f"{visitor.base}/s/{each}") for each in (foreign, "nothing-at-all")]
    assert [reply.status for reply in replies if reply] == [404, 404]
    visitor.complaints.clear()  # the browser notes both


@pytest.mark.parametrize("path", ["/", "/?q=words"])
async def test_nothing_is_wider_than_a_small_phone(
    enter: Enter, kept: Sessions, ann: Principal, path: str
) -> None:
    await begun(kept, ann, "W" * 300, "words " + "x" * 500, cwd="/" + "y" * 300, tags=("z" * 60, "tag"))
    visitor = await enter(path, viewport=PHONE, has_touch=True, is_mobile=True)
    await expect(visitor.page.locator(".row")).to_be_visible()
    assert await visitor.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


async def test_the_keys_are_told(enter: Enter) -> None:
    visitor = await enter()
    await visitor.page.keyboard.press("?")
    await expect(visitor.page.get_by_role("dialog", name="Keys")).to_be_visible()
    await visitor.page.keyboard.press("Escape")
    await expect(visitor.page.get_by_role("dialog")).to_have_count(0)


async def test_forks_stand_below_what_they_were_forked_from(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    origin = await begun(kept, ann, "Origin", "hello")
    fork = await kept.fork(ann, origin)
    await kept.rename(ann, fork.id, "A fork")
    below = await kept.fork(ann, fork.id)
    await kept.rename(ann, below.id, "A fork of it")
    await begun(kept, ann, "Something else", "hello")
    visitor = await enter()
    await kept.append(ann, below.id, say("more"))
    rows = visitor.page.locator(".row")
    await expect(rows.locator(".name")).to_have_text(["Origin", "A fork", "A fork of it", "Something else"])
    for name, depth in (("A fork", "1"), ("A fork of it", "2")):
        row = rows.filter(has=visitor.page.get_by_role("link", name=name, exact=True))
        await expect(row).to_have_attribute("data-depth", depth)


async def test_what_was_said_since_somebody_read_it_is_marked_until_they_do(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await begun(kept, ann, "Talk", "hello")
    visitor = await enter()
    unread = visitor.page.get_by_text("Unread")
    await expect(visitor.page.get_by_role("link", name="Talk")).to_be_visible()
    await expect(unread).to_have_count(0)
    await visitor.page.get_by_role("link", name="Talk").click()
    await expect(visitor.page.locator(".entry")).to_have_count(1)
    await visitor.page.go_back()
    await expect(visitor.page.get_by_role("link", name="Talk")).to_be_visible()
    await kept.append(ann, made, say("and more", "assistant"))
    await expect(unread).to_have_count(1)
    await visitor.page.get_by_role("link", name="Talk").click()
    await expect(visitor.page.locator(".entry")).to_have_count(2)
    await visitor.page.go_back()
    await expect(visitor.page.get_by_role("link", name="Talk")).to_be_visible()
    await expect(unread).to_have_count(0)


async def test_a_row_tells_how_full_the_context_is_and_what_the_session_cost(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    for title, model, tokens in (
        ("Little", "claude-sonnet-4-5", 49_900),
        ("Much", "claude-sonnet-4-5", 169_900),
        ("Larger", "gemini-2.5-pro", 524_188),
    ):
        made = await begun(kept, ann, title)
        used = Usage(input=tokens, output=100, cost=0.5 if title == "Much" else None)
        await kept.append(ann, made, Draft(role="assistant", parts=(), model=model, usage=used))
    await begun(kept, ann, "Nobody knows", "words")
    failed = Draft(role="tool", parts=(ToolResult(id="c", is_error=True),))
    await kept.append(ann, made, [failed, Draft(role="assistant", meta={"error": "overloaded"})])
    visitor = await enter()
    rows = visitor.page.locator(".row")
    for title, context, cost in (
        ("Little", "50k", "≈$0.15"),
        ("Much", "170k", "$0.50"),
        ("Nobody knows", "≈6", ""),
    ):
        row = rows.filter(has_text=title)
        await expect(row.locator(".name a")).to_have_attribute("title", re.compile(f"context {context}"))
        await expect(row.locator(".money")).to_have_text(cost)
    await expect(rows.filter(has_text="Larger")).to_contain_text("1 tool failure")
    await expect(rows.locator(".status.failed")).to_have_count(1)
    for title, told, full in (("Little", "25 %", 0), ("Much", "85 %", 1)):
        await visitor.page.get_by_role("link", name=title).click()
        header = visitor.page.locator(".heading")
        await expect(header).to_contain_text(title)
        await expect(header.get_by_role("img", name=told)).to_have_count(1)
        await expect(header.locator(".gauge.full")).to_have_count(full)
        await visitor.page.go_back()


async def test_keys_pin_and_put_away_and_take_that_back(enter: Enter, kept: Sessions, ann: Principal) -> None:
    ids = [await begun(kept, ann, title) for title in ("One", "Two")]
    visitor = await enter()
    page = visitor.page
    await page.get_by_role("link", name="One").focus()
    await page.keyboard.press("p")
    await expect(page.locator(".row", has_text="One")).to_contain_text("pinned")
    await expect(page.get_by_role("link", name="One")).to_be_focused()
    await page.keyboard.press("a")
    await expect(page.get_by_role("link", name="One")).to_have_count(0)
    await expect(page.get_by_role("link", name="Two")).to_be_focused()
    assert [(each.pinned, each.archived) for each in [await kept.get(ann, name) for name in ids]] == [
        (True, True),
        (False, False),
    ]
    await page.keyboard.press("f")
    await expect(page.get_by_role("link", name="All", exact=True)).to_be_focused()
    await page.get_by_role("link", name="Archived").click()
    await page.get_by_role("link", name="One").focus()
    await page.keyboard.press("a")
    await expect(page.get_by_text("No archived sessions")).to_be_visible()
    assert not (await kept.get(ann, ids[0])).archived


async def test_several_are_exported_as_one_file_that_can_be_imported(
    enter: Enter, kept: Sessions, ann: Principal, tmp_path: Path
) -> None:
    for title in ("One", "Two", "Three"):
        await begun(kept, ann, title, f"password=Xk29fjQ81mZp07Lw in {title}")
    visitor = await enter()
    for name in ("One", "Three"):
        await visitor.page.get_by_label(f"Select {name}").check()
    async with visitor.page.expect_download() as begins:
        await visitor.page.get_by_role("toolbar").get_by_role("button", name="Export").click()
    download = await begins.value
    assert download.suggested_filename == "sessions.jsonl"
    await expect(visitor.page.get_by_text("2 sessions exported. 2 secrets were replaced.")).to_be_visible()
    await expect(visitor.page.get_by_role("toolbar")).to_be_hidden()
    file = tmp_path / "sessions.jsonl"
    await download.save_as(file)
    heads = [line for line in map(json.loads, file.read_text().splitlines()) if "format" in line]
    assert sorted(head["session"]["title"] for head in heads) == ["One", "Three"]
    assert "Xk29fjQ81mZp07Lw" not in file.read_text()


async def test_ten_are_selected_by_range_or_at_once_and_keys_act_on_all_of_them(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    ids = [await begun(kept, ann, f"Number {number}") for number in range(60)]
    visitor = await enter()
    page, bar = visitor.page, visitor.page.get_by_role("toolbar", name="Selected sessions")
    await page.get_by_role("link", name="Number 59", exact=True).focus()
    await page.keyboard.press("x")
    for _ in range(4):
        await page.keyboard.press("j")
    await page.keyboard.press("X")
    await expect(page.locator("#how-many")).to_have_text("5 selected")
    await page.get_by_label("Select Number 50", exact=True).click(modifiers=["Shift"])
    await expect(page.locator("#how-many")).to_have_text("10 selected")
    await page.get_by_role("link", name="Number 55", exact=True).focus()
    await page.keyboard.press("t")
    await page.get_by_label("Tag for all selected").fill("seen")
    await page.keyboard.press("Enter")
    await expect(page.locator(".row .tag")).to_have_count(10)
    await expect(bar).to_be_hidden()
    assert [(await kept.get(ann, each)).tags for each in ids] == [()] * 50 + [("seen",)] * 10
    await page.keyboard.press("*")
    await expect(page.locator("#how-many")).to_have_text("60 selected")
    await page.keyboard.press("p")
    await expect(page.locator(".row .flag.pinned")).to_have_count(60)
    await expect(bar).to_be_hidden()
    await page.keyboard.press("x")
    await page.keyboard.press("Escape")
    await expect(bar).to_be_hidden()


async def test_the_list_is_narrowed_to_days_where_one_is_and_sorted(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    now = now_ms()
    times = {"Today": 0, "An hour ago": DAY_MS // 24, "Last week": 5 * DAY_MS, "Long ago": 60 * DAY_MS}
    for (name, ago), cost in zip(times.items(), (0.1, 0.2, 0.5, 0.3), strict=True):
        at = now - ago
        taken = Imported(id=f"pi:{name}", source="pi", created_at=at, updated_at=at, title=name)
        said = Entry(id="a", at=at, role="assistant", model="m", usage=Usage(input=1, output=1, cost=cost))
        await kept.transfer.sync(ann, taken, [said])
    # Somewhere the first hour of the day runs: there, an hour ago was yesterday.
    hours = (now // 3_600_000) % 24
    visitor = await enter(timezone_id=f"Etc/GMT{hours - 24 if hours > 12 else hours:+}")
    page, names = visitor.page, visitor.page.locator(".row .name")
    facets = page.get_by_role("navigation", name="Filters")
    await page.get_by_role("link", name="7 days").click()
    await expect(names).to_have_text(["Today", "An hour ago", "Last week"])
    await expect(facets.get_by_role("listitem").filter(has_text="Pi 3").first).to_be_visible()
    await page.get_by_role("link", name="cost", exact=True).click()
    await expect(names).to_have_text(["Last week", "An hour ago", "Today"])
    await page.get_by_role("link", name="7 days").click()
    await expect(names).to_have_text(["Last week", "Long ago", "An hour ago", "Today"])
    await expect(page).to_have_url(f"{visitor.base}/?sort=cost")
    await expect(page.locator(".row[data-day]")).to_have_count(0)
    await page.locator(".range summary").click()
    await page.get_by_label("From").fill(day_of(now - 61 * DAY_MS))
    await page.get_by_label("To", exact=True).fill(day_of(now - 59 * DAY_MS))
    await page.get_by_role("button", name="Show").click()
    await expect(names).to_have_text(["Long ago"])
    await visitor.go("/?since=1d")
    await expect(names).to_have_text(["Today"])


def day_of(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).date().isoformat()
