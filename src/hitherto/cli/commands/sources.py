"""`hitherto sources`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hitherto.cli.command import command
from hitherto.cli.terminal.output import Output
from hitherto.ids import now_ms
from hitherto.model import Value, decode_json
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.settings import read_settings
from hitherto.sources import AGENTS, Source, local_sources
from hitherto.sources.port import FoundSession
from hitherto.sources.shared.files import folder_exists
from hitherto.sources.sync.expiry import DAY, soon_deleted
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import find_all, is_new


class Described(Value, frozen=True):
    """The state of a source: its sessions, those not synced yet (`waiting`), the last change, unreadable databases, damaged
    and unknown records, those that are shown and those of each kind that are not (`left_out`), and the sessions that the
    agent will delete within seven days (`expiring`)."""

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
    shown_records: int = 0
    left_out_records: int = 0
    left_out: dict[str, int] = {}  # noqa: RUF012 - frozen, and msgspec copies a default that is empty
    expiring: int = 0


@command("hitherto sources", "hitherto sources --json", opens="read", or_none=True)
async def run(sessions: Sessions, out: Output) -> None:
    """Show the agents that `hitherto sync` imports from: where their sessions are, how many, and how many are new.

    Of the records that sync has read, it tells how many are shown, as messages or parts of them, and how many are of kinds that
    are not, such as settings and repetitions; JSON has the kinds.

    In a pipe, each line has these tab-separated fields: source, number of sessions, number not synced yet, time of the
    last change, folder, remarks, number of records shown, number not shown. No conversation is read.
    """
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
        titles = ("AGENT", "SESSIONS", "NEW", "SHOWN", "NOT SHOWN", "CHANGED", "FOLDER", "")
        out.table(titles, map(_row, found))
        return
    for each in found:
        when = None if each.changed_at is None else formats.utc(each.changed_at)
        records = (each.shown_records, each.left_out_records)
        out.row(each.source, each.sessions, each.waiting, when, each.folders[0], _remarks(each), *records)


def _described(source: Source, looked: Sequence[FoundSession], ledger: Ledger) -> Described:
    folders = source.folders()
    seen = ledger.seen(source.name)
    found = [each for each in looked if each.stamp]
    known = [seen[each.key] for each in found if each.key in seen]
    left_out = sum((Counter[str](decode_json(each.left_out)) for each in known), Counter[str]())
    return Described(
        source=source.name,
        title=AGENTS[source.name].title,
        folders=tuple(map(str, folders)),
        there=any(map(folder_exists, folders)),
        sessions=len(found),
        waiting=sum(is_new(each, seen.get(each.key)) for each in found),
        # A time on the first day of 1970 means that the time is unknown.
        changed_at=max((each.at for each in found if each.at >= DAY), default=None),
        unreadable=len(looked) - len(found),
        damaged_records=sum(each.damaged for each in known),
        unknown_records=sum(each.unknown for each in known),
        shown_records=sum(each.shown for each in known),
        left_out_records=left_out.total(),
        left_out=dict(left_out.most_common()),
        expiring=len(soon_deleted(source, found, now_ms())),
    )


def _row(each: Described) -> Sequence[str]:
    changed = "" if each.changed_at is None else formats.local(each.changed_at)
    folder = formats.short_folder(each.folders[0]) or ""
    counts = (each.sessions, each.waiting, each.shown_records, each.left_out_records)
    return each.title, *(f"{count:,}" for count in counts), changed, folder, _remarks(each)


def _remarks(each: Described) -> str:
    remarks = (
        (not each.there, "not found"),
        (each.unreadable, f"{formats.counted(each.unreadable, 'database')} not readable"),
        (each.damaged_records, formats.counted(each.damaged_records, "damaged record")),
        (each.unknown_records, f"{formats.counted(each.unknown_records, 'unknown record')}"),
        (each.expiring, f"{each.expiring} will be deleted within 7 days"),
    )
    return ", ".join(text for holds, text in remarks if holds)
