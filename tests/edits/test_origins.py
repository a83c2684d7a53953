"""Which edit wrote a line: only what an edit added counts for it, and what is not plain stays unknown."""

from __future__ import annotations

from hitherto.edits.edit import Hunk
from hitherto.edits.origins import (
    LineOrigin,
    Repository,
    SourceLine,
    Suspect,
    causes,
    lines_of_diff,
    origins,
)
from hitherto.edits.patches import of_git
from hitherto.edits.repositories import closeness, full_path, is_same_repository

FIRST = "shipping = tariff.lookup(country, weight_in_grams)"
SECOND = "raise BasketEmpty(f'nothing to ship to {country}')"
THIRD = "total_with_tax = round(total * tax_rate_of(country), 2)"


def line(text: str, number: int = 1, **more: object) -> SourceLine:
    return SourceLine(path="shop/basket.py", number=number, text=text, **more)  # type: ignore[arg-type]


def suspect(
    *added: str,
    at: int = 5,
    removed: tuple[str, ...] = (),
    exact: bool = True,
    close: int = 3,
    name: str = "s",
) -> Suspect:
    hunks = (Hunk(removed, added),)
    return Suspect(name, f"m-{name}", at, hunks, exact, "shop/basket.py", {"shop/basket.py": close})


def sessions(lines: list[SourceLine], *suspects: Suspect) -> list[str | None]:
    return [None if found is None else found.session for found in origins(lines, suspects, {})]


def test_only_lines_that_an_edit_added_are_its_own() -> None:
    lines = [line(FIRST, 1), line(SECOND, 2)]
    assert sessions(lines, suspect(FIRST, SECOND)) == ["s", "s"]
    assert sessions(lines, suspect(f"    {FIRST}", SECOND, removed=(FIRST,))) == [None, "s"]


def test_an_edit_after_the_line_was_committed_did_not_write_it() -> None:
    assert sessions([line(FIRST, until=5)], suspect(FIRST, at=5)) == [None]
    assert sessions([line(FIRST, until=6)], suspect(FIRST, at=5)) == ["s"]


def test_of_two_edits_of_one_line_the_later_one_before_the_commit_wrote_it() -> None:
    both = (suspect(FIRST, at=5, name="a"), suspect(FIRST, at=7, name="b"))
    assert sessions([line(FIRST, until=9)], *both) == ["b"]
    assert sessions([line(FIRST, until=6)], *both) == ["a"]


def test_lines_that_tell_little_are_known_only_by_their_neighbours() -> None:
    lines = [line("return None", 1), line("else:", 2)]
    assert sessions(lines, suspect("return None", "else:")) == [None, None]
    lines = [line(FIRST, 1), line("else:", 2), line("", 3), line(SECOND, 4)]
    assert sessions(lines, suspect(FIRST, "else:", "", SECOND)) == ["s"] * 4


def test_a_whole_file_of_which_nobody_knows_what_was_in_it_counts_little() -> None:
    assert sessions([line(FIRST)], suspect(FIRST, exact=False)) == [None]
    lines = [line(FIRST, 1), line(SECOND, 2)]
    whole = suspect(FIRST, SECOND, exact=False, at=9, name="whole")
    assert sessions(lines, whole) == ["whole", "whole"]
    assert sessions(lines, whole, suspect(FIRST, SECOND, name="exact")) == ["exact", "exact"]


def test_another_file_needs_more_evidence_than_the_same() -> None:
    lines = [line(FIRST, 1), line(SECOND, 2), line(THIRD, 3)]
    assert sessions(lines, suspect(FIRST, SECOND, THIRD, close=3)) == ["s"] * 3
    assert sessions(lines, suspect(FIRST, SECOND, THIRD, close=1)) == [None] * 3
    assert sessions(lines, suspect(FIRST, SECOND, THIRD, close=0)) == [None] * 3


def test_lines_that_were_only_broken_anew_are_known_again() -> None:
    long = "shipping = tariff.lookup(country, weight_in_grams, express=is_express, insured=value)"
    broken = [
        "shipping = tariff.lookup(",
        "    country, weight_in_grams,",
        "    express=is_express, insured=value",
        ")",
    ]
    lines = [line(text, at) for at, text in enumerate(broken, 1)]
    assert sessions(lines, suspect(long, SECOND))[:3] == ["s", "s", "s"]
    changed = [lines[0], line("    country, weight_in_pounds,", 2), *lines[2:]]
    assert sessions(changed, suspect(long, SECOND))[1] is None


def test_what_a_diff_only_moves_or_breaks_anew_is_no_session_s() -> None:
    diff = f"--- a/shop/basket.py\n+++ b/shop/basket.py\n@@ -1,1 +1,3 @@\n-{FIRST}\n+shipping = tariff.lookup(\n+  country, weight_in_grams\n+)\n"
    lines = lines_of_diff(of_git(diff), until=9, since=7)
    assert [each.is_moved for each in lines] == [True, True, False]
    assert sessions(lines, suspect(FIRST, at=5)) == [None] * 3


def test_a_session_for_which_little_speaks_is_not_named() -> None:
    lines = [line(FIRST, 1), line(SECOND, 2), line(THIRD, 3)]
    found = LineOrigin(session="s", message="m", at=1, confidence=0.8, prompt="Ship it")
    (cause,) = causes(lines, [found, found, None])
    assert (cause.session, cause.share, cause.prompts) == ("s", 0.6667, ("Ship it",))
    weak = [line("a_name = other_name(x)", at) for at in range(9)]
    assert causes(weak, [found, *[None] * 8]) == ()


def test_repositories_are_known_again_by_their_names_not_by_folders() -> None:
    here = Repository(names=("github.com/ada/engine", "engine"))
    assert is_same_repository("github.com/bob/Engine", None, here)
    assert not is_same_repository("github.com/ada/other", "/home/ada/engine", here)
    assert is_same_repository(None, "/home/ada/engine/src", here)
    path = full_path("src/a.py", "/home/ada/engine")
    assert closeness(path, same=True, file="src/a.py") == 3
    assert closeness(path, same=True, file="lib/b.py") == 2
    assert closeness(path, same=False, file="src/a.py") == 1
    assert closeness(path, same=False, file="a.py") == 0
