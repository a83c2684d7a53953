"""Two forks side by side, from the last message that both have."""

from __future__ import annotations

from playwright.async_api import expect

from hitherto.model import Principal
from hitherto.service import Sessions
from tests.gateway.page.conftest import Enter
from tests.gateway.page.test_dialogs import opened
from tests.gateway.page.test_list import PHONE, begun, say


async def forked(kept: Sessions, who: Principal) -> tuple[str, str]:
    """A session and a fork of it, which part after the second of their messages."""
    made = await begun(kept, who, "By hand", "Question")
    (last,) = (await kept.append(who, made, say("Answer", "assistant"))).entries
    fork = await kept.fork(who, made, at=last, title="By machine")
    await kept.append(who, made, [say(f"Mine {each}") for each in range(60)])
    await kept.append(who, fork.id, say("Theirs"))
    return made, fork.id


async def test_forks_are_chosen_and_read_side_by_side(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made, fork = await forked(kept, ann)
    await begun(kept, ann, "A stranger", "Question")
    visitor = await enter(f"/s/{fork}")
    page = visitor.page
    await opened(visitor, "Compare…")
    choice = page.get_by_role("dialog").get_by_role("listitem")
    await expect(choice).to_have_count(1)
    await expect(choice).to_contain_text("2 shared messages")
    await choice.get_by_role("link", name="By hand").click()
    await page.wait_for_url(f"**/compare?a={fork}&b={made}")
    one, other = page.get_by_role("region", name="By machine"), page.get_by_role("region", name="By hand")
    await expect(one).to_contain_text("1 message only here")
    await expect(other).to_contain_text("60 messages only here")
    assert await one.locator("article .said").all_inner_texts() == ["Theirs"]
    await expect(other.locator("article")).to_have_count(40)
    await expect(other.locator("article").first).to_contain_text("Mine 0")
    await page.get_by_text("2 shared messages; they diverge").click()
    await expect(page.locator(".common article")).to_contain_text("Answer")
    await other.get_by_role("link", name="More").click()
    await expect(other.locator("article")).to_have_count(60)
    await expect(one.locator("article")).to_have_count(1)
    await expect(other.get_by_role("link", name="More")).to_have_count(0)


async def test_on_a_phone_one_is_shown_at_a_time(enter: Enter, kept: Sessions, ann: Principal) -> None:
    made, fork = await forked(kept, ann)
    visitor = await enter(f"/compare?a={made}&b={fork}", viewport=PHONE)
    page = visitor.page
    await expect(page.get_by_text("Mine 0")).to_be_visible()
    await expect(page.get_by_text("Theirs")).to_be_hidden()
    await page.get_by_text("By machine").first.click()
    await expect(page.get_by_text("Theirs")).to_be_visible()
    await expect(page.get_by_text("Mine 0")).to_be_hidden()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_sessions_without_relatives_and_pairs_that_are_none_are_told(
    enter: Enter, kept: Sessions, ann: Principal
) -> None:
    one, other = await begun(kept, ann, "One", "Hello"), await begun(kept, ann, "Other", "Hello")
    visitor = await enter(f"/s/{one}")
    page = visitor.page
    await opened(visitor, "Compare…")
    await expect(page.get_by_role("dialog")).to_contain_text("No other session shares messages with this one")
    await visitor.go(f"/compare?a={one}&b={other}")
    await expect(page.get_by_text("No shared messages.")).to_be_visible()
    for pair, told in {
        f"a={one}&b={one}": "A session cannot be compared with itself: name two sessions.",
        f"a={one}&b=nowhere": "No session of yours has this address.",
    }.items():
        await visitor.go(f"/compare?{pair}")
        await expect(page.get_by_text(told)).to_be_visible()
    visitor.overlook(400, 404)
