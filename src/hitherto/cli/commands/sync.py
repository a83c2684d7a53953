"""`hitherto sync`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import click
from msgspec.structs import asdict as as_fields

from hitherto.cli.command import command
from hitherto.cli.terminal.output import Output, progress
from hitherto.ids import now_ms
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.settings import read_settings
from hitherto.sources import AGENTS, Source, local_sources
from hitherto.sources.port import FoundSession
from hitherto.sources.sync.expiry import Expiring, expiring
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.recordings import unlink_extended
from hitherto.sources.sync.sync import Report, Sync, find_all
from hitherto.sources.sync.watch import changes_of

NAMED = 5
"""How many of the sessions that an agent will delete soon are listed; JSON has all."""


@command("hitherto sync", "hitherto sync --watch", "hitherto sync --json", opens="make")
@click.option("--watch", is_flag=True, help="Keep running and import changes until ^C.")
async def run(sessions: Sessions, out: Output, *, watch: bool) -> int:
    """Import the sessions of your agents and keep them in sync.

    Reads the files of Claude Code, Codex, Gemini CLI and other agents (see `hitherto sources`) and never changes them.
    Only new content is read. A session stays here when its agent deletes it. Synced sessions are read-only: fork one to
    continue it here, or use `hitherto resume`.
    """
    ledger = Ledger(read_settings().data_dir / f"sources-{sessions.admin.store_id}.db")
    try:
        if not watch:
            sources, found = _found()
            report = await _once(sessions, ledger, sources, found, hidden=out.json)
            soon = await expiring(sessions, LOCAL, ledger, sources, found, now_ms())
            return _print_report(out, report, soon)
        sources = local_sources()
        folders = [folder for source in sources for folder in source.folders()]
        async for _ in changes_of(folders, lambda: [file for each in sources for file in each.beside()]):
            report = await _once(sessions, ledger, *_found(), hidden=True)
            if report.parsed_files or report.kept or report.failed:
                _print_report(out, report)
        return 0
    finally:
        ledger.close()


def _found() -> tuple[list[Source], list[FoundSession]]:
    sources = local_sources()
    return sources, find_all(sources)


async def _once(
    sessions: Sessions,
    ledger: Ledger,
    sources: Sequence[Source],
    found: Sequence[FoundSession],
    *,
    hidden: bool,
) -> Report:
    budget = read_settings().raw_budget
    since = await sessions.changes.newest(LOCAL)
    with progress("Reading transcripts", len(found), hidden=hidden) as advance:
        report = await Sync(sessions, LOCAL, ledger, advance, raw=budget > 0).run(sources, found)
    if report.parsed_files or not budget:
        await sessions.transfer.trim_raw(LOCAL, budget)
    if report.updated:
        await unlink_extended(sessions, LOCAL, since)
    return report


def _print_report(out: Output, report: Report, soon: Sequence[Expiring] = ()) -> int:
    if out.json:
        out.document({**as_fields(report), "expiring": soon})
    else:
        for failure in report.failed:
            out.line(f"cannot read {failure}")
        out.line(report_sentence(report))
        for line in expiry_lines(soon):
            out.line(line)
    return 1 if report.failed else 0


def expiry_lines(soon: Sequence[Expiring]) -> Iterator[str]:
    """The sessions that agents will delete soon, by agent; the first of each are listed."""
    for source, count in Counter(each.source for each in soon).items():
        them = "it" if count == 1 else "them"
        agent, what = AGENTS[source].title, formats.counted(count, "session")
        yield f"{agent} will delete {what} within 7 days; Hitherto keeps {them}:"
        own = [each for each in soon if each.source == source]
        for each in own[:NAMED]:
            yield f"  {formats.day(each.at)}  {each.session}  {each.title or ''}".rstrip()
        if count > NAMED:
            yield f"  and {count - NAMED} more"


def report_sentence(report: Report) -> str:
    """A report as one sentence."""
    parts = [f"{report.new} new", f"{report.updated} updated", f"{report.unchanged} unchanged"]
    more = (
        (report.kept, *["kept after the agent deleted the file"] * 2),
        (report.refused, *["skipped because you deleted it here"] * 2),
        (report.damaged_records, "damaged record skipped", "damaged records skipped"),
        (
            report.unknown_records,
            "unknown record kept unchanged",
            "unknown records kept unchanged",
        ),
        (len(report.failed), *["could not be read"] * 2),
    )
    parts += [f"{count} {one if count == 1 else many}" for count, one, many in more if count]
    return f"{formats.counted(report.found, 'transcript')}: {', '.join(parts)}."
