"""Sessions that were written to make their reader's browser do something: it shows them, and does nothing."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlencode

from msgspec.structs import replace
from playwright.async_api import Browser, expect

from hitherto.errors import HithertoError
from hitherto.gateway.page.templates import POLICY, named
from hitherto.model import Draft, Live, Principal, Text, Usage, encode
from hitherto.service import Sessions
from tests.gateway.page.browser import context_of
from tests.gateway.page.conftest import Enter
from tests.gateway.page.visitor import REPORT, Visitor
from tests.support.hostile_sessions import parts
from tests.support.hostile_texts import MARKUP, PAYLOADS

FOUND = """() => {
  for (const each of document.querySelectorAll("details")) each.open = true;
  const bad = [];
  for (const each of document.querySelectorAll("*")) {
    for (const {name, value} of each.attributes) {
      if (name.startsWith("on") || name === "style" || name === "srcdoc") bad.push(`${each.localName} ${name}`);
      if (["href", "src", "action"].includes(name) && !/^(https?:|mailto:|\\/(?!\\/)|#|data:image\\/(png|jpeg|gif|webp);)/.test(value)) bad.push(value);
    }
  }
  for (const each of document.querySelectorAll("iframe, object, embed, base, meta[http-equiv], svg:not(.drawn), svg.drawn :not(a, line, rect, text, title, .rail path), math, style, video, main form:not(#composer, #finding, .range > form)")) bad.push(each.localName);
  for (const each of document.querySelectorAll("script, link")) {
    if (!(each.src || each.href).startsWith(location.origin + "/static/")) bad.push(each.outerHTML);
  }
  if (document.documentElement.scrollWidth > innerWidth) {
    const wide = [...document.querySelectorAll("main *")].filter((each) => each.getBoundingClientRect().right > innerWidth);
    bad.push(`too wide: ${wide.slice(0, 3).map((each) => each.outerHTML.slice(0, 200)).join(" ")}`);
  }
  if (document.querySelectorAll("#signout").length !== 1) bad.push("broken layout");
  return bad;
}"""


async def taken(kept: Sessions, who: Principal, text: str, name: str | None = None) -> str:
    """A session of which every field is the text, as far as a field takes it; its id is the text or the name."""
    session = None
    for fields in ({"agent_id": text, "channel": text}, {}):
        with suppress(HithertoError):
            session = session or await kept.create(who, session_id=name or text, **fields)  # type: ignore[arg-type]
    session = session or await kept.create(who)
    with suppress(HithertoError):
        await kept.rename(who, session.id, text)
    with suppress(HithertoError):
        await kept.tag(who, session.id, add=[text])
    with suppress(HithertoError):
        await kept.move(who, session.id, f"/{text}")
    for branch in (text, None):
        with suppress(HithertoError):
            await kept.projects.assign(who, session.id, text, branch=branch)
    said, model = (Text(text=f"needle {text}"),), text.encode("utf-8", "replace").decode()
    usage = Usage(input=900, output=100, cost=0.25)
    await kept.append(
        who, session.id, Draft(role="user", parts=said, model=model, tokens=len(text), usage=usage)
    )
    return session.id


def entry(text: str, number: int) -> Draft:
    """A message of which every field is the text; its id too, if it can be one."""
    said = parts(text)
    role = ("user", "assistant", "system", "tool")[number % 4]
    plain = text.encode("utf-8", "replace").decode()
    named = f"{number} {plain}" if "\0" not in plain else None
    return Draft(id=named, role=role, parts=said, model=plain)  # type: ignore[arg-type]


async def is_harmless(visitor: Visitor) -> None:
    assert await visitor.page.evaluate(FOUND) == []


async def test_lists_and_searches_show_hostile_names_and_do_nothing(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    for text in PAYLOADS:
        await taken(kept, ann, text)
    visitor = await enter(viewport={"width": 360, "height": 700})
    for path in ("/", "/?q=needle"):
        await visitor.go(path)
        await visitor.scrolled_through("#following", ".row")
        await expect(visitor.page.locator(".row")).to_have_count(len(PAYLOADS))
        await is_harmless(visitor)
    for path in ("/usage", "/usage?by=model&of=<script>"):
        await visitor.go(path)
        await expect(visitor.page.locator(".stacks a").first).to_be_attached()
        await is_harmless(visitor)


async def test_transcripts_show_hostile_messages_and_do_nothing(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    made = await taken(kept, ann, MARKUP[0])
    drafts = [entry(text, number) for number, text in enumerate(PAYLOADS)]
    ids = (await kept.append(ann, made, drafts)).entries
    visitor = await enter()
    seen: set[str] = set()
    for at in (*range(30, len(ids), 30), None):
        place = "" if at is None else f"&{urlencode({'before': ids[at], 'find': PAYLOADS[at]})}"
        reply = await visitor.page.goto(f"{visitor.base}/s/{named(made)}?steps=1{place}")
        assert reply is not None
        assert POLICY.decode() in reply.headers["content-security-policy"]
        seen.update(map(unquote, re.findall(r'<article id="m-([^"]+)"', await reply.text())))
        await visitor.is_in()
        await is_harmless(visitor)
    assert seen >= set(ids)
    # What stands for all of it, and what is being said.
    await kept.compact(ann, made, replace(entry("".join(MARKUP), 2), id=None), keep=0)
    await kept.changes.put_live(ann, made, encode(Live(entry="e", parts=parts("\n\n".join(MARKUP[:20])))))
    await visitor.go(f"/s/{named(made)}")
    await expect(visitor.page.locator(".entry.compaction")).to_be_visible()
    await is_harmless(visitor)


async def test_files_of_hostile_sessions_do_nothing_in_a_browser(
    browser: Browser, kept: Sessions, ann: Principal, tmp_path: Path
) -> None:
    made = await taken(kept, ann, MARKUP[0])
    drafts = [entry(text, number) for number, text in enumerate(PAYLOADS)]
    await kept.append(ann, made, drafts)
    file = tmp_path / "hostile.html"
    file.write_bytes(b"".join([piece async for piece in kept.transfer.export_file(ann, made, "html")]))
    context = await context_of(browser, viewport={"width": 360, "height": 700})
    page = await context.new_page()
    told: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("dialog", lambda dialog: told.append(dialog.message))
    page.on("request", lambda request: asked.append(request.url))
    await page.add_init_script(REPORT)
    await page.goto(file.as_uri())
    bad = await page.evaluate(FOUND.replace('"#signout").length !== 1', '"title").length !== 1'))
    assert bad == ["meta", "style"]  # the policy and the style of the file itself
    assert told == []
    assert {url for url in asked if not url.startswith("data:")} == {file.as_uri()}
    await context.close()


async def test_hostile_addresses_do_nothing(enter: Enter) -> None:
    visitor = await enter()
    for text in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "\u202eabc"):
        for name in ("q", "tag", "source", "agent", "project", "day", "status", "cursor"):
            await visitor.page.goto(f"{visitor.base}/?{name}={text}")
            await visitor.is_in()
            await is_harmless(visitor)
            assert "49" not in await visitor.page.locator("body").inner_text()


async def test_no_script_can_make_markup_of_a_text(enter: Enter) -> None:
    """The last wall, for whatever mistake is made in the others."""
    visitor = await enter()
    refused = await visitor.page.evaluate("""() => {
      const element = document.createElement("div");
      const tries = [
        () => (element.innerHTML = "<b>x</b>"),
        () => element.insertAdjacentHTML("beforeend", "<b>x</b>"),
        () => element.setAttribute("onclick", "alert(1)"),
        () => new DOMParser().parseFromString("<b>x</b>", "text/html"),
        () => document.write("<b>x</b>"),
        () => trustedTypes.createPolicy("any", {createHTML: (text) => text}),
      ];
      return tries.filter((work) => { try { work(); } catch { return true; } }).length;
    }""")
    assert refused == 6
    visitor.complaints.clear()  # the browser notes each
