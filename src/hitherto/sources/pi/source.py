"""Pi as a source: its transcripts as sessions of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from hitherto.model import Json, Session, Usage
from hitherto.service import Imported
from hitherto.sources.pi import parse
from hitherto.sources.pi.parse import Parsed
from hitherto.sources.port import FoundSession, Known, Reading, Unreadable, found_unreadable
from hitherto.sources.shared import files
from hitherto.sources.shared.files import path_meta, path_of, raw_copies
from hitherto.sources.shared.usage import total
from hitherto.values.titles import title_from

NAME = "pi"
SUFFIX = ".jsonl"


class PiSource(msgspec.Struct, frozen=True):
    """The transcripts in Pi's folder of sessions."""

    home: Path
    name: str = NAME
    version: int = 2

    def folders(self) -> Sequence[Path]:
        return (self.home,)

    def beside(self) -> Sequence[Path]:
        return ()

    def find(self) -> Iterator[FoundSession]:
        unreadable = list[Unreadable]()
        for folder in files.list_folder(self.home, unreadable=unreadable).folders:
            for file in files.list_folder(self.home / folder, SUFFIX, unreadable=unreadable).files:
                stamp = file.stamp
                yield FoundSession(self, file.where, stamp, stamp[3] // files.MS, file, stamp[2], file.name)
        yield from found_unreadable(self, unreadable)

    def read(self, found: FoundSession, known: Known | None) -> Reading:  # noqa: ARG002 - a tree is read as a whole
        file = found.where_as(files.FoundFile)
        data = files.read_whole(file.path)
        parsed = parse.parse(data)
        return Reading(
            imported=imported_from(file, parsed),
            entries=parsed.entries,
            total=len(parsed.entries),
            compactions=parsed.compactions,
            branches=parsed.branches,
            raw=list(raw_copies(data)),
            size=len(data),
            damaged=parsed.damage.records,
            unknown=parsed.unknown,
            census=parsed.census,
        )

    def resume(self, session: Session) -> Sequence[str] | None:
        """One whose path is no text cannot be named."""
        path = session.meta.get("path")
        return ("pi", "--session", path) if isinstance(path, str) and path == str(path_of(session)) else None

    def restorable_path(self, session: Session) -> Path | None:
        path = path_of(session)
        inside = path.is_relative_to(self.home) and ".." not in path.parts
        return path if inside and path.suffix == SUFFIX else None


def imported_from(file: files.FoundFile, parsed: Parsed) -> Imported:
    """The session in a transcript."""
    info, at = parsed.info, file.at
    updated = info.updated_at or at
    return Imported(
        id=f"{NAME}:{info.session_id or file.path.stem}",
        source=NAME,
        created_at=min(info.created_at or at, updated),
        updated_at=updated,
        cwd=info.cwd if info.cwd and info.cwd.startswith("/") else None,
        title=info.name or title_from(info.first_prompt or ""),
        agent_id=NAME,
        meta={**path_meta(file.path), **meta_of(parsed)},
    )


def meta_of(parsed: Parsed) -> Json:
    """What else is known and worth showing; left out where it is not."""
    spent = total(entry.usage for entry in parsed.entries)
    meta: Json = {
        "models": list(parsed.info.models),
        "usage": None if spent is None else msgspec.to_builtins(spent),
        "cost": _cost(entry.usage for entry in parsed.entries),
        "version": str(parsed.info.version),
        "forked_from": parsed.info.forked_from,
        "labels": parsed.info.labels,
        "unknown_records": parsed.unknown,
        "damaged_records": parsed.damage.records,
    }
    return {name: value for name, value in meta.items() if value}


def _cost(usages: Iterator[Usage | None]) -> float | None:
    known = [usage.cost for usage in usages if usage is not None and usage.cost is not None]
    return sum(known) if known else None
