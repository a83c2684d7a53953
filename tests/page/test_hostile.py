"""Sessions that were written to make their reader's browser do something: it shows them, and does nothing."""

from __future__ import annotations

import re
from contextlib import suppress

from playwright.async_api import expect

from recollect.errors import RecollectError
from recollect.model import Draft, Principal, Text
from recollect.service import Sessions
from tests.page.conftest import Enter
from tests.page.visiting import Visitor
from tests.unit.hostile import HOSTILE, MARKDOWN, MARKUP
from tests.unit.pages import parts

FORMS = ("```html\n{}\n```", "`{}`", "> {}", "[{}](http://a.example/)", "| {} |\n|---|\n| {} |")
TEMPLATES = ("{{ 7 * 7 }}", "{% include '/etc/passwd' %}", "${7*7}", "<%= 7*7 %>", "#{7*7}", "{{ config }}")
PAYLOADS = (
    *HOSTILE,
    *TEMPLATES,
    *(form.replace("{}", text) for form in FORMS for text in MARKUP[:22]),
    *(f"\x1b[31m{text}\x1b[0m" for text in MARKDOWN[:20]),
)
FOUND = """() => {
  for (const each of document.querySelectorAll("details")) each.open = true;
  const bad = [];
  for (const each of document.querySelectorAll("*")) {
    for (const {name, value} of each.attributes) {
      if (name.startsWith("on") || name === "style" || name === "srcdoc") bad.push(`${each.localName} ${name}`);
      if (["href", "src", "action"].includes(name) && !/^(https?:|mailto:|\\/(?!\\/)|#|data:image\\/(png|jpeg|gif|webp);)/.test(value)) bad.push(value);
    }
  }
  for (const each of document.querySelectorAll("iframe, object, embed, base, meta[http-equiv], svg, math, style, video, main form:not(#composer)")) bad.push(each.localName);
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


async def taken(kept: Sessions, who: Principal, text: str) -> str:
    """A session of which every field is the text, as far as a field takes it."""
    session = await kept.create(who, title="x")
    with suppress(RecollectError):
        await kept.rename(who, session.id, text)
    with suppress(RecollectError):
        await kept.tag(who, session.id, add=[text])
    with suppress(RecollectError):
        await kept.move(who, session.id, f"/{text}")
    await kept.append(who, session.id, Draft(role="user", parts=(Text(text=f"needle {text}"),)))
    return session.id


def entry(text: str, number: int) -> Draft:
    said = parts(text)
    role = ("user", "assistant", "system", "tool")[number % 4]
    return Draft(role=role, parts=said, model=text.encode("utf-8", "replace").decode())  # type: ignore[arg-type]


async def is_harmless(visitor: Visitor) -> None:
    assert await visitor.page.evaluate(FOUND) == []


def test_there_are_two_hundred() -> None:
    assert len(set(PAYLOADS)) >= 200


async def test_lists_and_searches_show_hostile_names_and_do_nothing(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    for text in PAYLOADS[:120]:
        await taken(kept, ann, text)
    visitor = await enter(viewport={"width": 360, "height": 700})
    for path in ("/", "/?q=needle"):
        await visitor.go(path)
        while await visitor.page.locator("#following").count():
            before = await visitor.page.locator(".row").count()
            await visitor.page.locator(".row").last.scroll_into_view_if_needed()
            await expect(visitor.page.locator(".row").nth(before)).to_be_attached()
        assert await visitor.page.locator(".row").count() == 120
        await is_harmless(visitor)


async def test_transcripts_show_hostile_messages_and_do_nothing(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    session = await kept.create(ann, title="Hostile")
    drafts = [entry(text, number) for number, text in enumerate(PAYLOADS)]
    ids = (await kept.append(ann, session.id, drafts)).entries
    visitor = await enter()
    seen: set[str] = set()
    for place in ("", *(f"?before={ids[at]}" for at in range(30, len(ids), 30))):
        reply = await visitor.page.goto(f"{visitor.base}/s/{session.id}{place}")
        assert reply is not None
        seen.update(re.findall(r'<article id="m-([^"]+)"', await reply.text()))
        await visitor.is_in()
        await is_harmless(visitor)
    assert seen == set(ids)


async def test_hostile_addresses_do_nothing(enter: Enter) -> None:
    visitor = await enter()
    for text in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "\u202eabc"):
        for name in ("q", "tag", "source", "cursor"):
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
