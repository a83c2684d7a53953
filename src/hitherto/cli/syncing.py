"""Sync as commands run it: once, with what it found and how far it is in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hitherto.cli.terminal.output import clean, fitted
from hitherto.model import LOCAL
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.settings import read_settings
from hitherto.sources import AGENTS, Source, local_sources
from hitherto.sources.port import FoundSession
from hitherto.sources.sync.ledger import Ledger
from hitherto.sources.sync.recordings import unlink_extended
from hitherto.sources.sync.sync import Progress, Report, Sync, Told, find_all


def own_ledger(sessions: Sessions) -> Ledger:
    """The ledger of this machine for a store."""
    return Ledger(read_settings().data_dir / f"sources-{sessions.admin.store_id}.db")


def found_here() -> tuple[list[Source], list[FoundSession]]:
    """The sources of this machine, and their sessions."""
    sources = local_sources()
    return sources, find_all(sources)


async def sync_once(
    sessions: Sessions, ledger: Ledger, sources: Sequence[Source], found: Sequence[FoundSession], told: Told
) -> Report:
    """Import what changed in these sessions."""
    budget = read_settings().raw_budget
    since = await sessions.changes.newest(LOCAL)
    report = await Sync(sessions, LOCAL, ledger, told, raw=budget > 0).run(sources, found)
    if report.parsed_files or not budget:
        await sessions.transfer.trim_raw(LOCAL, budget)
    if report.updated:
        await unlink_extended(sessions, LOCAL, since)
    return report


def progress_sentence(progress: Progress) -> str:
    """`303 sessions of Claude Code, Codex and Gemini CLI; reading … 2.1 of 4.8 GB`."""
    *most, last = [AGENTS[name].title for name in progress.agents] or ["your agents"]
    agents = f"{', '.join(most)} and {last}" if most else last
    return f"{formats.counted(progress.found, 'session')} of {agents}; reading … {_share(progress)}"


def _share(progress: Progress) -> str:
    """How much of it is read: `2.1 of 4.8 GB`, `850 kB of 4.8 GB`."""
    done, size = formats.size(progress.done), formats.size(progress.size)
    number, _, unit = done.partition(" ")
    return f"{number if size.endswith(f' {unit}') else done} of {size}"


@contextmanager
def status_line(*, hidden: bool = False) -> Iterator[Callable[[str], None]]:
    """One line at the bottom of the terminal that the yielded function rewrites; it is gone at the end. Without a terminal there
    is none."""
    if hidden or not sys.stderr.isatty():
        yield lambda _: None
        return

    def show(text: str) -> None:
        sys.stderr.write(f"\r{fitted(clean(text))}\x1b[K")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
