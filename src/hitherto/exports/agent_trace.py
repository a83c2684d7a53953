"""Agent Trace 0.1: which lines of a revision were written in which conversation, for other programs. Pure."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from hitherto.edits.origins import LineOrigin, SourceLine
from hitherto.model import Json, encode
from hitherto.presentation import formats
from hitherto.values.usage.prices import listed_name

VERSION = "0.1.0"
MODEL_CHARS = 250
Traced = tuple[SourceLine, LineOrigin]


def trace_record(
    lines: Iterable[tuple[SourceLine, LineOrigin | None]],
    *,
    revision: str | None,
    tool: str,
    at: int,
    page: str,
) -> Json:
    """A record of the lines of a revision whose origin is known; links lead to `page`.

    The same lines at the same revision make a record of the same id. Nothing that was said is in it.
    """
    by_path: dict[str, list[Traced]] = {}
    for line, origin in lines:
        if origin is not None:
            by_path.setdefault(line.path, []).append((line, origin))
    files = [
        {"path": path, "conversations": list(_conversations(own, page))} for path, own in by_path.items()
    ]
    vcs = {} if revision is None else {"vcs": {"type": "git", "revision": revision}}
    sure = [origin.confidence for own in by_path.values() for _, origin in own]
    return {
        "version": VERSION,
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, encode([revision, files]).decode("utf-8", "replace"))),
        "timestamp": formats.utc(at),
        **vcs,
        "tool": {"name": "hitherto", "version": tool},
        "files": files,
        "metadata": {"confidence": round(sum(sure) / len(sure), 2)} if sure else {},
    }


def _conversations(traced: Sequence[Traced], page: str) -> Iterator[Json]:
    """The messages that wrote these lines of a file, each with its ranges."""
    by_message: dict[tuple[str, str, str | None], list[SourceLine]] = {}
    for line, origin in traced:
        by_message.setdefault((origin.session, origin.message, origin.model), []).append(line)
    for (session, message, model), own in by_message.items():
        named = {} if model is None else {"model_id": listed_name(model)[:MODEL_CHARS]}
        yield {
            "url": _link(page, session),
            "contributor": {"type": "ai", **named},
            "ranges": list(_ranges(own)),
            "related": [{"type": "message", "url": f"{_link(page, session)}?at={quote(message, safe='')}"}],
        }


def _link(page: str, session: str) -> str:
    return f"{page.rstrip('/')}/s/{quote(session, safe=':')}"


def _ranges(lines: Sequence[SourceLine]) -> Iterator[Json]:
    """Lines that follow each other are one range."""
    run: list[SourceLine] = []
    for line in (*sorted(lines, key=lambda each: each.number), None):
        if run and (line is None or line.number != run[-1].number + 1):
            text = "\n".join(each.text for each in run)
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            yield {
                "start_line": run[0].number,
                "end_line": run[-1].number,
                "content_hash": f"sha256:{digest}",
            }
            run = []
        if line is not None:
            run.append(line)
