"""From lines to the edits that wrote them, within a transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from hitherto.edits.batches import EditRecord
from hitherto.edits.changes import FileTouch, ends_with, shown_path
from hitherto.edits.lines import line_marks, mark, name_mark, plain, shingle_marks, weight, words_of
from hitherto.edits.origins import LineOrigin, Repository, SourceLine, Suspect, origins
from hitherto.edits.repositories import closeness, full_path, is_same_repository
from hitherto.errors import StoreDamaged
from hitherto.limits import ROWS_EXAMINED
from hitherto.model import Filter, Session, decode_entry, plain_text
from hitherto.ports import Reader, Record
from hitherto.service.catalog.projects import renamed_to
from hitherto.service.edits.load import load_edits
from hitherto.values.filters import normal_filter
from hitherto.values.spans import Stretch

SUSPECTS = 600
"""So many edits, those that speak most for themselves, are compared with the lines."""
SESSIONS = 50
LOOKED_AT = 2_000
"""So many sessions are looked at for the newest edits, some at a time."""
ANCESTORS = 8
PROMPT_REACH = 400
PROMPT_STEP = 20
PROMPT_CHARS = 2_000


class _Found(NamedTuple):
    """An edit that has marks in common with the lines, its session, and the one that it counts for."""

    log: int
    record: EditRecord
    own: Record
    counts_for: Record
    marks: set[int]


class Suspicion(NamedTuple):
    """The edits that may have written lines, and how many sessions wrote each line."""

    suspects: list[tuple[Suspect, _Found]]
    sessions_with: dict[str, int]

    def origins(self, lines: Sequence[SourceLine]) -> list[LineOrigin | None]:
        """The origin of each line, without prompts."""
        return origins(lines, [suspect for suspect, _ in self.suspects], self.sessions_with)


async def suspect_edits(
    tx: Reader, key: bytes, owner: str, lines: Sequence[SourceLine], repository: Repository
) -> Suspicion:
    """The edits that have something in common with these lines of a repository."""
    wanted = _marks(key, lines)
    if not wanted:
        return Suspicion([], {})
    repository = replace(repository, names=await _all_names(tx, owner, repository))
    latest = None if any(line.until is None for line in lines) else max(line.until or 0 for line in lines)
    found, sessions = await _suspected(tx, owner, wanted, latest)
    suspects = await _suspects(
        tx,
        owner,
        _ranked(found, sessions),
        {name for line in lines for name in (line.path, line.former_path) if name},
        repository,
    )
    return Suspicion(suspects, _sessions_with(key, lines, sessions))


async def _all_names(tx: Reader, owner: str, repository: Repository) -> tuple[str, ...]:
    """The names that a repository goes by: also the one that it was first met under, and those that it was given."""
    known = await tx.rooted(owner, repository.root) if repository.root else None
    names = [*repository.names, *([known] if known else [])]
    return tuple(dict.fromkeys([*names, *[await renamed_to(tx, owner, name) for name in names]]))


def _marks(key: bytes, lines: Sequence[SourceLine]) -> frozenset[int]:
    found: set[int] = set()
    by_path: defaultdict[str, list[SourceLine]] = defaultdict(list)
    for line in lines:
        by_path[line.path].append(line)
    for path, own in by_path.items():
        found.update(line_marks(key, (line.text for line in own), notebook=path.endswith(".ipynb")))
        found.update(shingle_marks(key, words_of(line.text for line in own)))
    return frozenset(found)


async def _suspected(
    tx: Reader, owner: str, wanted: frozenset[int], latest: int | None
) -> tuple[list[_Found], dict[int, set[int]]]:
    """The edits that have any of the marks, and the sessions that have each mark."""
    found: list[_Found] = []
    sessions: defaultdict[int, set[int]] = defaultdict(set)
    families: dict[int, tuple[Record, Record] | None] = {}
    for batch in await tx.edits_marked(owner, wanted):
        if batch.log not in families:
            families[batch.log] = await _family(tx, owner, batch.log)
        family = families[batch.log]
        if family is None:
            continue
        for record, marks in batch.marked(wanted):
            for each in marks:
                sessions[each].add(family[1].num)
            if not record.failed and (latest is None or record.at < latest):
                found.append(_Found(batch.log, record, *family, marks))
    return found, sessions


async def touches(tx: Reader, key: bytes, owner: str, file: str) -> list[FileTouch]:
    """The sessions that changed a file whose path ends so, the one that did last first."""
    wanted = frozenset([name_mark(key, file)])
    by_session: defaultdict[str, list[tuple[EditRecord, str]]] = defaultdict(list)
    for batch in await tx.edits_marked(owner, wanted):
        family = await _family(tx, owner, batch.log)
        if family is None:
            continue
        for record, _ in batch.marked(wanted):
            cwd = family[0].session.cwd
            paths = [full_path(path, cwd) for path in (record.path, record.to) if path]
            path = next((each for each in paths if ends_with(each, file)), None)
            if path is not None and not record.failed:
                by_session[family[1].session.id].append((record, shown_path(path, cwd)))
    found = [
        _touch(session, own[-1][1], [record for record, _ in own]) for session, own in by_session.items()
    ]
    return sorted(found, key=_newest_first)


async def recent_touches(tx: Reader, owner: str, limit: int) -> list[FileTouch]:
    """The files that sessions changed last, the newest edit first. Sessions are looked at from the newest on, until none of those
    that are left can have changed anything later."""
    every, found = normal_filter(Filter(archived="include")), list[FileTouch]()
    below, looked = None, 0
    while looked < LOOKED_AT:
        scan = await tx.scan(owner, every, below, SESSIONS, ROWS_EXAMINED)
        sessions = {record.session.id: record.session for record in scan.records}
        for session, records in (await tx.edits_reached(owner, list(sessions))).records():
            found += _by_file(sessions[session], records)
        found = sorted(found, key=_newest_first)[:limit]
        below, looked = scan.last, looked + SESSIONS
        if scan.ended or below is None or (len(found) == limit and found[-1].at >= below.order_at):
            break
    return found


def _by_file(session: Session, records: Iterable[EditRecord]) -> Iterator[FileTouch]:
    by_path: defaultdict[str, list[EditRecord]] = defaultdict(list)
    for record in records:
        if not record.failed:
            by_path[shown_path(full_path(record.to or record.path, session.cwd), session.cwd)].append(record)
    for path, own in by_path.items():
        yield _touch(session.id, path, own)


def _touch(session: str, path: str, records: Sequence[EditRecord]) -> FileTouch:
    return FileTouch(
        session=session,
        at=max(record.at for record in records),
        path=path,
        edits=len(records),
        added=sum(record.added for record in records),
        removed=sum(record.removed for record in records),
    )


def _newest_first(touch: FileTouch) -> tuple[int, str, str]:
    return -touch.at, touch.session, touch.path


async def _family(tx: Reader, owner: str, log: int) -> tuple[Record, Record] | None:
    """The session that a log is of, or one that still reaches it, and the session that it counts for."""
    own = await tx.by_num(owner, log)
    if own is None:
        reaching = await tx.reaching(owner, log)
        own = await tx.by_num(owner, min(reaching)) if reaching else None
    if own is None:
        return None
    above = own
    for _ in range(ANCESTORS):
        if above.session.source is None or above.session.parent is None:
            break
        parent = await tx.session(owner, above.session.parent)
        if parent is None:
            break
        above = parent
    return own, above


def _ranked(found: Iterable[_Found], sessions: dict[int, set[int]]) -> list[_Found]:
    """The edits with the most marks that few sessions have."""
    ranked = sorted(found, key=lambda each: -sum(1 / len(sessions[mark]) for mark in each.marks))
    return ranked[:SUSPECTS]


async def _suspects(
    tx: Reader, owner: str, found: Sequence[_Found], files: Iterable[str], repository: Repository
) -> list[tuple[Suspect, _Found]]:
    files = list(files)
    by_place = {(each.log, each.record.seq, each.record.part): each for each in found}
    near: dict[tuple[int, int, int], dict[str, int]] = {}
    for place, each in by_place.items():
        own = each.own.session
        same = is_same_repository(own.project, own.cwd, repository)
        path = full_path(each.record.to or each.record.path, own.cwd)
        close = {file: known for file in files if (known := closeness(path, same=same, file=file))}
        if close:
            near[place] = close
    loaded = await load_edits(tx, owner, [(log, by_place[log, seq, part].record) for log, seq, part in near])
    return [
        (
            Suspect(
                session=by_place[place].counts_for.session.id,
                message=each.entry.id,
                at=each.entry.at,
                hunks=each.edit.hunks,
                exact=each.edit.kind != "write",
                path=each.edit.path,
                closeness=near[place],
                model=each.entry.model,
            ),
            by_place[place],
        )
        for each in loaded
        if (place := (each.log, each.record.seq, each.record.part))
    ]


def _sessions_with(key: bytes, lines: Sequence[SourceLine], sessions: dict[int, set[int]]) -> dict[str, int]:
    """How many sessions wrote each line that tells something, by its plain form."""
    forms = {
        plain(line.text, notebook=line.path.endswith(".ipynb")) for line in lines if weight(line.text) > 1
    }
    return {form: len(sessions.get(mark(key, "line", form), ())) for form in forms}


async def with_prompts(
    tx: Reader, owner: str, traced: Sequence[LineOrigin | None], suspicion: Suspicion
) -> list[LineOrigin | None]:
    """The origins with the prompts that led to them."""
    found = {suspect.message: each for suspect, each in suspicion.suspects}
    prompts: dict[str, str | None] = {}
    for each in traced:
        if each is not None and each.message not in prompts:
            prompts[each.message] = await _prompt(tx, owner, found[each.message])
    return [None if each is None else replace(each, prompt=prompts[each.message]) for each in traced]


async def _prompt(tx: Reader, owner: str, found: _Found) -> str | None:
    """The prompt that led to an edit: the last of a person's messages before it; for a subagent, in its parent."""
    log, last = found.log, found.record.seq - 1
    if found.counts_for.num != found.own.num:
        log, last = found.counts_for.num, found.counts_for.head
    least = max(last - PROMPT_REACH, 0)
    while last > least:
        first = max(last - PROMPT_STEP + 1, 1)
        try:
            payloads = await tx.payloads(owner, [Stretch(log, first, last)])
        except StoreDamaged:
            return None  # some of them are collected
        for entry in map(decode_entry, reversed(payloads)):
            if entry.role == "user" and entry.at <= found.record.at and (said := plain_text(entry).strip()):
                return " ".join(said.split())[:PROMPT_CHARS]
        last = first - 1
    return None
