"""Forks stand below what they were forked from."""

from __future__ import annotations

from hitherto.gateway.page.render.rows import row
from hitherto.gateway.page.views.list import families
from hitherto.model import Session

NOW = 1_700_000_000_000


def tree(*pairs: tuple[str, str | None]) -> list[tuple[str, int]]:
    """The ids and depths of sessions, given with their parents, newest first."""
    rows = [
        row(Session(id=name, parent=parent, revision=1, created_at=NOW, updated_at=NOW - at), NOW)
        for at, (name, parent) in enumerate(pairs)
    ]
    return [(each.session.id, each.depth) for each in families(rows)]


def test_a_family_stands_where_its_newest_does_and_each_fork_below_its_origin() -> None:
    assert tree(("x", None), ("grandchild", "child"), ("y", None), ("origin", None), ("other", "origin"), ("child", "origin")) == [
        ("x", 0), ("origin", 0), ("other", 1), ("child", 1), ("grandchild", 2), ("y", 0),
    ]  # fmt: skip


def test_a_fork_whose_origin_is_not_there_stands_for_itself() -> None:
    assert tree(("a", "gone"), ("b", "a")) == [("a", 0), ("b", 1)]


def test_a_circle_loses_nobody() -> None:
    shown = tree(("a", "b"), ("b", "a"), ("c", "b"), ("self", "self"))
    assert sorted(name for name, _ in shown) == ["a", "b", "c", "self"]
