"""`hitherto sources`."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.cli.command import command
from hitherto.cli.terminal.output import Output
from hitherto.ids import now_ms
from hitherto.model import Value
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.settings import read_settings
from hitherto.sources import AGENTS, Source, local_sources
from hitherto.sources.port import Found
from hitherto.sources.shared.files import folder_exists
from hitherto.sources.sync.expiry import DAY, soon_deleted
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import find_all, is_new


class Described(Value, frozen=True):
    """What lies in a source: how many sessions, how many of these wait to be read (again), when one was changed last,
    how many databases cannot be read, how many of the records read so far were damaged or of a new kind, and how many
    sessions the agent will delete by itself within seven days."""

    source: str
    title: str
    folders: tuple[str, ...]
    there: bool
    sessions: int = 0
    waiting: int = 0
    changed_at: int | None = None
    unreadable: int = 0
    damaged_records: int = 0
    unknown_records: int = 0
    expiring: int = 0


@command("hitherto sources", "hitherto sources --json")
async def run(sessions: Sessions, out: Output) -> None:
    """The agents whose own sessions `hitherto sync` takes in: what was found where, how much, how fresh."""
    ledger = Ledger(read_settings().data_dir / f"sources-{sessions.admin.store_id}.db")
    try:
        sources = local_sources()
        looked = find_all(sources)
        found = [
            _described(source, [each for each in looked if each.source is source], ledger)
            for source in sources
        ]
    finally:
        ledger.close()
    if out.json:
        out.document({"sources": found})
        return
    if out.terminal:
        out.table(("AGENT", "SESSIONS", "NOT READ", "CHANGED", "FOLDER", ""), map(_row, found))
        return
    for each in found:
        when = None if each.changed_at is None else formats.utc(each.changed_at)
        out.row(each.source, each.sessions, each.waiting, when, each.folders[0], _remarks(each))


def _described(source: Source, looked: Sequence[Found], ledger: Ledger) -> Described:
    folders = source.folders()
    seen = ledger.seen(source.name)
    found = [each for each in looked if each.stamp]
    known = [seen[each.key] for each in found if each.key in seen]
    return Described(
        source=source.name,
        title=AGENTS[source.name].title,
        folders=tuple(map(str, folders)),
        there=any(map(folder_exists, folders)),
        sessions=len(found),
        waiting=sum(is_new(each, seen.get(each.key)) for each in found),
        # The first day of all times stands for one that is not known.
        changed_at=max((each.at for each in found if each.at >= DAY), default=None),
        unreadable=len(looked) - len(found),
        damaged_records=sum(each.damaged for each in known),
        unknown_records=sum(each.unknown for each in known),
        expiring=len(soon_deleted(source, found, now_ms())),
    )


def _row(each: Described) -> Sequence[str]:
    changed = "" if each.changed_at is None else formats.local(each.changed_at)
    folder = formats.short_folder(each.folders[0]) or ""
    return each.title, str(each.sessions), str(each.waiting), changed, folder, _remarks(each)


def _remarks(each: Described) -> str:
    told = (
        (not each.there, "not there"),
        (each.unreadable, f"{formats.counted(each.unreadable, 'place')} not readable"),
        (each.damaged_records, formats.counted(each.damaged_records, "damaged record")),
        (each.unknown_records, f"{formats.counted(each.unknown_records, 'record')} of a new kind"),
        (each.expiring, f"{each.expiring} to be deleted within 7 days"),
    )
    return ", ".join(text for holds, text in told if holds)
