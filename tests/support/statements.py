"""Whose rows a statement is about: every one on an owner's tables names the owner by equality, as a distributed database needs.

Statements are recorded as the PostgreSQL store issues them, and read by PostgreSQL's own parser.
"""

# mypy: disable-error-code="union-attr, arg-type, index, misc, return-value, operator"
# The parser's types say of everything that it may be missing.

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pglast import ast, parse_sql

from hitherto.stores.postgres.check import OWNERS as CHECKED_OWNERS
from hitherto.stores.postgres.partitions import LED_BY_OWNER
from hitherto.stores.postgres.read_tx import CHATS, INBOXES, QUARANTINED, RUNNING, SILENT_OF_ALL
from hitherto.stores.postgres.search import END_ORDERING, ORDER_ENTRIES, ORDER_TITLES, UNORDERED
from hitherto.stores.postgres.statistics import SESSIONS
from hitherto.stores.postgres.store import ABOUT, OWNERS
from hitherto.stores.postgres.write_tx import OWNERS_OF_OLD_MEMOS, SOME_GARBAGE

VIEWS = frozenset({"facet_as_it_should_be"})
_PLACEHOLDER = re.compile(r"%(?:\((\w+)\))?[sbt]|%%")
_LOG = logging.getLogger("hitherto.stores.postgres.statements")
Problems = list[str]


class _Recorder(logging.Filter):
    """Notes statements for all who want to know, and lets none of them into a log."""

    def __init__(self) -> None:
        super().__init__()
        self.wanted: list[set[str]] = []

    def filter(self, record: logging.LogRecord) -> bool:
        for seen in self.wanted:
            seen.add(str(record.msg))
        return False


_RECORDER = _Recorder()


@contextmanager
def recorded() -> Iterator[set[str]]:
    """The statements that the stores of this process issue meanwhile."""
    seen: set[str] = set()
    _LOG.addFilter(_RECORDER)
    _LOG.setLevel(logging.DEBUG)
    _RECORDER.wanted.append(seen)
    try:
        yield seen
    finally:
        _RECORDER.wanted = [each for each in _RECORDER.wanted if each is not seen]


EXCEPTIONS = {
    OWNERS: "who has sessions: for housekeeping and for people who look after the store",
    CHECKED_OWNERS: "whose rows the doctor looks at, one owner after the other",
    ABOUT: "the size of the whole store",
    SESSIONS: "a migration of stores that are older than distribution",
    QUARANTINED: "what was set aside, of every owner",
    CHATS: "which kinds of chats there are, for resets of every owner",
    SILENT_OF_ALL: "which chats of every owner are silent; each is then reset by its owner",
    INBOXES: "where something waits to be said, of every owner; each is then read by its owner",
    RUNNING: "which sessions of every owner are said to run; each is then looked at by its owner",
    SOME_GARBAGE: "what is to be collected, of every owner; each log is then locked by its owner",
    OWNERS_OF_OLD_MEMOS: "whose notes are to be forgotten, one owner after the other",
}
"""Statements that name no owner, and why. None of them writes or locks."""


OF_EARLIER_STORES = (ORDER_ENTRIES, ORDER_TITLES, END_ORDERING, UNORDERED)
"""What brings a store of an earlier version up to date while servers run. Such a store has data, and cannot be distributed."""


def unlike_the_rule(statements: Iterable[str]) -> dict[str, Problems]:
    """What is wrong with each of these statements, exceptions apart."""
    return {
        statement: found
        for statement in statements
        if statement not in EXCEPTIONS
        and statement not in OF_EARLIER_STORES
        and (found := problems_of(statement))
    }


def problems_of(statement: str) -> Problems:
    """What the statement lacks; nothing if it names an owner wherever it should."""
    return [problem for raw in parse_sql(_numbered(statement)) for problem in _of(raw.stmt, {}, frozenset())]


def does_lock(statement: str) -> bool:
    """Whether the statement writes, or locks rows."""
    return any(_locks(raw.stmt) for raw in parse_sql(_numbered(statement)))


def _numbered(statement: str) -> str:
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        return f"${numbers.setdefault(found[1] or str(len(numbers)), len(numbers) + 1)}"

    return _PLACEHOLDER.sub(number, statement)


def _nodes(value: Any) -> Iterator[ast.Node]:
    """The nodes directly below this one."""
    for name in value:
        child = getattr(value, name)
        for each in child if isinstance(child, tuple) else (child,):
            if isinstance(each, ast.Node):
                yield each


def _locks(node: ast.Node) -> bool:
    kinds = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.LockingClause, ast.LockStmt)
    return isinstance(node, kinds) or any(map(_locks, _nodes(node)))


class _Level:
    """The relations of one query, and which of them are known to be of one owner."""

    def __init__(self, outer: Mapping[str, bool], ctes: frozenset[str]) -> None:
        self.outer, self.ctes = outer, ctes
        self.owned: dict[str, bool] = {}
        self.others: set[str] = set()
        self.conditions: list[ast.Node] = []
        self.below: list[ast.Node] = []

    def add(self, item: ast.Node | None) -> None:
        """A relation, or a join of some."""
        match item:
            case None:
                return
            case ast.RangeVar():
                name = item.alias.aliasname if item.alias else item.relname
                is_owned = item.relname in {*LED_BY_OWNER, *VIEWS} and item.relname not in self.ctes
                if is_owned:
                    self.owned[name] = False
                else:
                    self.others.add(name)
            case ast.JoinExpr():
                self.add(item.larg)
                self.add(item.rarg)
                self.condition(item.quals)
            case ast.RangeSubselect():
                # What passes by itself is of one owner; what it sees beside it, it sees below.
                self.others.add(item.alias.aliasname)
                self.below.append(item.subquery)
            case _:
                self.below.append(item)

    def condition(self, node: ast.Node | None) -> None:
        """Something that must hold."""
        if node is None:
            return
        if isinstance(node, ast.BoolExpr) and node.boolop.name == "AND_EXPR":
            for each in node.args:
                self.condition(each)
        else:
            self.conditions.append(node)
            self.below.append(node)

    def settle(self) -> None:
        """Find out which relations are of one owner."""
        pairs = [pair for node in self.conditions if (pair := _equality(node)) is not None]
        changed = True
        while changed:
            changed = False
            for left, right in (*pairs, *((right, left) for left, right in pairs)):
                name = self._owned(left)
                if name is not None and not self.owned[name] and self._is_known(right):
                    self.owned[name] = changed = True

    def _owned(self, side: ast.Node) -> str | None:
        """The relation here whose owner this is."""
        names = _column(side)
        if names is None or names[-1] != "owner":
            return None
        if len(names) == 2:
            return names[0] if names[0] in self.owned else None
        return next(iter(self.owned)) if len(self.owned) == 1 else None

    def _is_known(self, side: ast.Node) -> bool:
        if isinstance(side, ast.TypeCast):
            return self._is_known(side.arg)
        if isinstance(side, ast.ParamRef | ast.A_Const):
            return True
        names = _column(side)
        if names is None or names[-1] != "owner":
            return False
        if (own := self._owned(side)) is not None:
            return self.owned[own]
        return names[0] in self.others or self.outer.get(names[0], False)

    def visible(self) -> dict[str, bool]:
        """What a query below sees."""
        return {**self.outer, **dict.fromkeys(self.others, True), **self.owned}


def _column(node: ast.Node) -> list[str] | None:
    if not isinstance(node, ast.ColumnRef):
        return None
    return [field.sval for field in node.fields if isinstance(field, ast.String)] or None


def _equality(node: ast.Node) -> tuple[ast.Node, ast.Node] | None:
    if isinstance(node, ast.A_Expr) and node.kind.name == "AEXPR_OP" and [n.sval for n in node.name] == ["="]:
        return node.lexpr, node.rexpr
    return None


def _of(node: ast.Node, outer: Mapping[str, bool], ctes: frozenset[str]) -> Problems:
    found: Problems = []
    with_clause = getattr(node, "withClause", None)
    for cte in with_clause.ctes if with_clause else ():
        inside = ctes | {cte.ctename} if with_clause.recursive else ctes
        found += _of(cte.ctequery, outer, inside)
        ctes |= {cte.ctename}
    return found + _body(node, outer, ctes)


def _body(node: ast.Node, outer: Mapping[str, bool], ctes: frozenset[str]) -> Problems:
    match node:
        case ast.SelectStmt(larg=ast.Node()):
            return _of(node.larg, outer, ctes) + _of(node.rarg, outer, ctes)
        case ast.SelectStmt():
            return _query(node, node.fromClause or (), outer, ctes)
        case ast.UpdateStmt():
            return _query(node, (node.relation, *(node.fromClause or ())), outer, ctes)
        case ast.DeleteStmt():
            return _query(node, (node.relation, *(node.usingClause or ())), outer, ctes)
        case ast.InsertStmt():
            return _insertion(node, outer, ctes)
    return [problem for below in _nodes(node) for problem in _of(below, outer, ctes)]


def _query(
    node: ast.Node, relations: Sequence[ast.Node], outer: Mapping[str, bool], ctes: frozenset[str]
) -> Problems:
    level = _Level(outer, ctes)
    for relation in relations:
        level.add(relation)
    level.condition(getattr(node, "whereClause", None))
    level.settle()
    found = [f"{name}: the owner is not named" for name, known in level.owned.items() if not known]
    skipped = {"withClause", "fromClause", "usingClause", "relation", "whereClause"}
    rest = [
        each
        for name in node
        if name not in skipped
        for child in [getattr(node, name)]
        for each in (child if isinstance(child, tuple) else (child,))
        if isinstance(each, ast.Node)
    ]
    for below in (*level.below, *rest):
        found += _of(below, level.visible(), ctes)
    return found


def _insertion(node: ast.InsertStmt, outer: Mapping[str, bool], ctes: frozenset[str]) -> Problems:
    found = _of(node.selectStmt, outer, ctes) if node.selectStmt else []
    if node.relation.relname not in LED_BY_OWNER:
        return found
    names = [target.name for target in node.cols or ()]
    if "owner" not in names:
        return [*found, f"{node.relation.relname}: the owner is not written"]
    at, select = names.index("owner"), node.selectStmt
    rows = select.valuesLists or [[target.val for target in select.targetList or ()]]
    for row in rows:
        value = row[at].arg if isinstance(row[at], ast.TypeCast) else row[at]
        if not isinstance(value, ast.ParamRef | ast.A_Const) and (_column(value) or [""])[-1] != "owner":
            found.append(f"{node.relation.relname}: the owner is written from something else")
    return found
