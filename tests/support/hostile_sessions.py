"""Sessions in which every text is hostile, and files of them."""

from __future__ import annotations

from collections.abc import Sequence

from hitherto.exports import FORMATS, About
from hitherto.exports.lines import Replaced
from hitherto.model import (
    Audio,
    Entry,
    Image,
    Part,
    Plan,
    Resource,
    ResourceLink,
    Role,
    Session,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)

NOW = 1_750_000_000_000


def parts(text: str) -> tuple[Part, ...]:
    """Every kind of part, with this text wherever a text can be."""
    picture = Image(mime_type=text, data=text, uri=text)
    return (
        Text(text=text),
        Thought(text=text, signature=text),
        picture,
        Image(mime_type="image/png", data=text),
        Image(mime_type="image/svg+xml", data="PHN2Zz4="),
        Audio(mime_type=text, data=text),
        Resource(uri=text, text=text),
        Resource(uri=text, blob=text),
        ResourceLink(uri=text, name=text, title=text, description=text),
        ToolCall(id=text, name=text, title=text, input={text: [text, 1, None]}),
        ToolResult(id=text, content=(Text(text=text), picture, Unknown(raw=text)), is_error=True),
        ToolResult(id=text, output={text: text}),
        Plan(steps=({"content": text, "status": text},)),
        Unknown(raw={text: text}),
    )


def session(text: str, title: str | None = None) -> Session:
    """A session with this text wherever a text can be."""
    return Session(
        id=text,
        revision=1,
        created_at=NOW,
        updated_at=NOW,
        title=title or text,
        cwd=text,
        tags=(text,),
        key=text,
    )


def entry(text: str, role: Role = "user", said: tuple[Part, ...] | None = None) -> Entry:
    """A message likewise."""
    return Entry(id=text, at=NOW, role=role, parts=parts(text) if said is None else said, model=text)


def page(
    format: str,
    text: str,
    *,
    said: tuple[Part, ...] | None = None,
    role: Role = "user",
    title: str | None = None,
) -> str:
    """A session of three entries in this format; the last is a summary."""
    return written(format, [entry(text, role, said)] * 3, text=text, title=title, marks=(2,))


def written(
    format: str,
    entries: Sequence[Entry],
    *,
    text: str = "x",
    title: str | None = None,
    marks: Sequence[int] = (),
) -> str:
    """A session of these entries in this format; those at `marks` are summaries."""
    about = About(
        session=session(text, title), message_count=3, token_count=None, exported_at=NOW, redacted=True
    )
    writer = FORMATS[format].writer(about)
    pieces = [writer.begin()]
    pieces += [writer.entry(each, mark=at in marks) for at, each in enumerate(entries)]
    pieces.append(
        writer.end((Replaced(kind=text, count=2, entry=text), Replaced(kind=text, count=1, where=text)))
    )
    return "".join(pieces)
