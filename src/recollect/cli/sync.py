"""`recollect sync`."""

from __future__ import annotations

import click

from recollect.cli.command import command
from recollect.cli.output import Output
from recollect.cli.progress import progress
from recollect.model import LOCAL
from recollect.service import Sessions
from recollect.settings import read_settings
from recollect.sources import sources_here
from recollect.sources.following import changes_of
from recollect.sources.ledger import Ledger
from recollect.sources.syncing import Report, Sync


@command("recollect sync", "recollect sync --watch", "recollect sync --json")
@click.option("--watch", is_flag=True, help="Go on and take in what changes, until interrupted.")
async def run(sessions: Sessions, out: Output, *, watch: bool) -> int:
    """Take the sessions that Claude Code keeps in its own files into the store. Those files are never changed."""
    ledger = Ledger(read_settings().data_dir / f"sources-{sessions.store_id}.db")
    try:
        if not watch:
            return _tell(out, await _once(sessions, ledger, hidden=out.json))
        async for _ in changes_of([folder for source in sources_here() for folder in source.folders()]):
            report = await _once(sessions, ledger, hidden=True)
            if report.parsed_files or report.kept or report.failed:
                _tell(out, report)
        return 0
    finally:
        ledger.close()


async def _once(sessions: Sessions, ledger: Ledger, *, hidden: bool) -> Report:
    sources = sources_here()
    found = [each for source in sources for each in source.find()]
    with progress("Reading transcripts", len(found), hidden=hidden) as advance:
        return await Sync(sessions, LOCAL, ledger, advance).run(sources, found)


def _tell(out: Output, report: Report) -> int:
    if out.json:
        out.document(report)
    else:
        for failure in report.failed:
            out.line(f"not read: {failure}")
        out.line(in_words(report))
    return 1 if report.failed else 0


def in_words(report: Report) -> str:
    """A report in plain words."""
    parts = [f"{report.new} new", f"{report.updated} updated", f"{report.unchanged} unchanged"]
    more = (
        (report.kept, "kept although their files are gone"),
        (report.refused, "deleted here before and left out"),
        (report.damaged_records, "damaged records passed over"),
        (report.unknown_records, "records of a new kind kept as they are"),
        (len(report.failed), "files not read"),
    )
    parts += [f"{count} {what}" for count, what in more if count]
    return f"{report.found} transcripts: {', '.join(parts)}."
