"""`hitherto sync`."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence

import click
from msgspec.structs import asdict as as_fields

from hitherto.cli import syncing
from hitherto.cli.command import command
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.output import Output
from hitherto.ids import now_ms
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.sources import AGENTS, local_sources
from hitherto.sources.sync.expiry import Expiring, expiring
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.sync import Report, Told
from hitherto.sources.sync.watch import changes_of

NICE = 5
"""Whoever asks the server comes first."""
NAMED = 5
"""How many of the sessions that an agent will delete soon are listed; JSON has all."""


@command("hitherto sync", "hitherto sync --watch", "hitherto sync --json", opens="make")
@click.option("--watch", is_flag=True, help="Keep running and import changes until ^C.")
@click.option("--beside", is_flag=True, hidden=True, help="Run for the server that started this process.")
async def run(sessions: Sessions, out: Output, *, watch: bool, beside: bool) -> int:
    """Import the sessions of your agents and keep them in sync, those that changed last first.

    Reads the files of Claude Code, Codex, Gemini CLI and other agents (see `hitherto sources`) and never changes them.
    Only new content is read. A session stays here when its agent deletes it. Synced sessions are read-only: fork one to
    continue it here, or use `hitherto resume`. `hitherto serve` syncs by itself.
    """
    ledger = syncing.own_ledger(sessions)
    try:
        if beside:
            await _run_beside(sessions, out, ledger)
        elif watch:
            async for report in _followed(sessions, ledger, lambda _: None):
                if report.parsed_files or report.kept or report.failed:
                    _print_report(out, report)
        else:
            return await _run_once(sessions, out, ledger)
        return 0
    finally:
        ledger.close()


async def _run_once(sessions: Sessions, out: Output, ledger: Ledger) -> int:
    sources, found = syncing.found_here()
    with syncing.status_line(hidden=out.json) as show:
        report = await syncing.sync_once(
            sessions, ledger, sources, found, lambda far: show(syncing.progress_sentence(far))
        )
    soon = await expiring(sessions, LOCAL, ledger, sources, found, now_ms())
    return _print_report(out, report, soon)


async def _followed(sessions: Sessions, ledger: Ledger, told: Told) -> AsyncIterator[Report]:
    """Sync, and again whenever something may have changed."""
    sources = local_sources()
    folders = [folder for source in sources for folder in source.folders()]
    async for _ in changes_of(folders, lambda: [file for each in sources for file in each.beside()]):
        yield await syncing.sync_once(sessions, ledger, *syncing.found_here(), told)


async def _run_beside(sessions: Sessions, out: Output, ledger: Ledger) -> None:
    """Follow the sources for a server: it reads how far this is, line by line, and this ends with it."""
    os.nice(NICE)
    threading.Thread(target=_end_with_server, daemon=True).start()
    async for report in _followed(sessions, ledger, lambda far: out.document({"progress": far})):
        out.document({"report": report})


def _end_with_server() -> None:
    """The server holds the other end of standard input. What was not imported yet is found again."""
    sys.stdin.buffer.read()
    os._exit(exit_codes.OK)


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
