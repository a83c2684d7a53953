"""The metadata of a session, read from its transcript in one pass, and continued when the file has grown.

Most bytes of a transcript are skipped: the pass goes from line to line and decodes only the lines that matter.
"""

from __future__ import annotations

import os
import re
import zlib
from datetime import datetime

import msgspec

from hitherto.claude import lines
from hitherto.claude.paths import ARCHIVED, TRANSCRIPT, open_transcript, read_sidecar

# How far from the end of a line a title is searched that was written after a torn record.
REACH = 2_048
# If so many bytes before the end of what was read have changed, the file was rewritten.
MARK = 1_024

PROGRAMS = frozenset({"sdk-cli", "sdk-ts", "sdk-py"})
_LINKED = b'{"parentUuid"'
_TYPED = b'{"type":"'
_BRANCH = b'"gitBranch"'
# The end of records about the session: a line of the conversation that ends like this has one appended.
_ENDING = b'"sessionId":"'
_ENDING_LENGTH = len(_ENDING) + 36 + len('"}')


class Metadata(msgspec.Struct, array_like=True, gc=False):
    """What lists show of a transcript, and how far the file was read."""

    end: int = 0
    mark: int = 0
    started: bool = False
    is_sidechain: bool = False
    is_programmatic: bool = False
    created_at: int | None = None
    cwd: str | None = None
    relocated_cwd: str | None = None
    first_branch: str | None = None
    last_branch: str | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    tag: str | None = None
    last_prompt: str | None = None
    summary: str | None = None
    first_prompt: str | None = None
    command: str | None = None
    picture: str | None = None


class Record(msgspec.Struct, rename="camel", gc=False):
    """The fields of a record that lists need."""

    type: str = ""
    uuid: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    timestamp: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    entrypoint: str | None = None
    session_kind: str | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    tag: str | None = None
    last_prompt: str | None = None
    summary: str | None = None
    relocated_cwd: str | None = None
    message: msgspec.Raw = msgspec.Raw(b"null")


_record = msgspec.json.Decoder(Record)
_NAMES = dict(zip(Record.__struct_fields__, Record.__struct_encode_fields__, strict=True))
_LINKS = frozenset({"user", "assistant", "progress", "system", "attachment"})
# The field that is kept of a record of each type; the last record counts.
_KEPT = {
    "custom-title": "custom_title",
    "ai-title": "ai_title",
    "tag": "tag",
    "last-prompt": "last_prompt",
    "summary": "summary",
    "relocated": "relocated_cwd",
}
_KEPT_TYPES = frozenset(name.encode() for name in _KEPT)
# Types without anything for a list: their lines are skipped once the start of the session is known.
_PASSED_TYPES = frozenset(
    b"queue-operation file-history-snapshot file-history-delta cost-state tools-used api-request api-request-blob "
    b"api-request-shape agent-name agent-color agent-setting mode permission-mode content-replacement progress".split()
)


def read_metadata(descriptor: int, known: Metadata | None = None) -> Metadata:
    """The metadata in a transcript; `known` is the result of an earlier call for a file that has only grown since."""
    found = Metadata() if known is None else msgspec.structs.replace(known)
    for offset, block, size in lines.read_blocks(descriptor, found.end):
        _Pass(found, block, size).run()
        # A last line without an end may still be being written: it is read again when the file has grown.
        found.end = offset + block.rfind(b"\n", 0, size) + 1
    found.mark = mark(descriptor, found.end)
    return found


def mark(descriptor: int, end: int) -> int:
    """A checksum of the file's first bytes and of those before `end`."""
    head = os.pread(descriptor, min(end, MARK), 0)
    return zlib.crc32(os.pread(descriptor, min(end, MARK), max(0, end - MARK)), zlib.crc32(head))


class _Pass:
    """One pass over a piece of a transcript, from line to line."""

    def __init__(self, found: Metadata, data: bytes, size: int) -> None:
        self._found = found
        self._data = data
        self._size = size

    def run(self) -> None:
        """Read the piece."""
        data = self._data
        find, starts = data.find, data.startswith
        place = self._begin()
        size = self._size
        while place < size:
            end = find(b"\n", place, size)
            if end < 0:
                end = size
            if starts(_LINKED, place):
                if starts(_ENDING, end - _ENDING_LENGTH):
                    self._look_behind(place, end)
            elif end > place:
                self._look_at(place, end)
            place = end + 1
        self._take_branch()

    def _look_at(self, place: int, end: int) -> None:
        """Read a line that does not look like part of the conversation."""
        if self._data.startswith(_TYPED, place) and self._type(place) in _PASSED_TYPES:
            self._look_behind(place, end)
        else:
            self._take(place, end)

    def _look_behind(self, place: int, end: int) -> None:
        """Find a title that was written after a torn record, in the same line."""
        hit = self._data.rfind(_TYPED, max(place, end - REACH), end)
        if hit > place and self._type(hit) in _KEPT_TYPES:
            self._take(place, end)

    def _type(self, place: int) -> bytes:
        start = place + len(_TYPED)
        return self._data[start : self._data.find(b'"', start, start + 64)]

    def _take(self, place: int, end: int) -> None:
        for record in records_in(self._data[place:end]):
            self._keep(record)

    def _keep(self, record: Record) -> None:
        """Keep a value that counts wherever it is; the last one wins."""
        field = _KEPT.get(record.type)
        value = getattr(record, field) if field else None
        if field and value is not None:
            setattr(self._found, field, value)

    def _take_branch(self) -> None:
        """Keep the git branch that is named last."""
        data, end = self._data, self._size
        while (hit := data.rfind(_BRANCH, 0, end)) >= 0:
            start = data.rfind(b"\n", 0, hit) + 1
            line_end = data.find(b"\n", hit, end)
            for record in reversed(records_in(data[start : line_end if line_end >= 0 else end])):
                if record.git_branch is not None:
                    self._found.last_branch = record.git_branch
                    return
            end = start

    def _begin(self) -> int:
        """Read what only the start of a transcript has, and return where the rest begins."""
        data, found = self._data, self._found
        place = 0
        while place < self._size and not (found.started and found.first_prompt is not None):
            end = data.find(b"\n", place, self._size)
            if end < 0:
                end = self._size
            for record in records_in(data[place:end]):
                self._begin_with(record)
                self._keep(record)
            place = end + 1
        return place

    def _begin_with(self, record: Record) -> None:
        found = self._found
        if found.created_at is None and record.timestamp:
            found.created_at = milliseconds(record.timestamp)
        if record.type in _LINKS and not found.started:
            found.started = True
            found.is_sidechain = bool(record.is_sidechain)
            found.is_programmatic = record.entrypoint in PROGRAMS or record.session_kind == "daemon"
        found.cwd = found.cwd or record.cwd
        found.first_branch = found.first_branch or record.git_branch
        opened = opening_of_record(record)
        if opened is not None:
            found.first_prompt = found.first_prompt or opened.prompt
            found.command = found.command or opened.command
            found.picture = found.picture or opened.picture


def records_in(line: bytes) -> list[Record]:
    """The records of one line: usually one."""
    try:
        return [_record.decode(line)]
    except (ValueError, RecursionError):  # among them every error of msgspec's
        return [_loose_record(record) for record in lines.read_line(line)[0]]


def _loose_record(record: bytes) -> Record:
    """A record with values of unexpected types."""
    try:
        return _record.decode(record)
    except (ValueError, RecursionError):
        values = lines.decode_object(record)
    found = Record()
    for field, name in _NAMES.items():
        value = values.get(name)
        if field == "message":
            found.message = msgspec.Raw(lines.encode(value))
        elif field.startswith("is_"):
            setattr(found, field, bool(value))
        elif isinstance(value, str):
            setattr(found, field, value)
    return found


def opening_of_record(record: Record) -> Opening | None:
    """What a record offers as a title, if it is the user's own message."""
    if record.type != "user" or record.is_meta or record.is_compact_summary:
        return None
    return opening_of_message(record.message)


def milliseconds(stamp: str) -> int | None:
    """An ISO time in ms; None if it is invalid. A time without a zone is local, as in the SDK."""
    try:
        return int(datetime.fromisoformat(stamp).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def is_archived(own: str, modified: int) -> bool:
    """Whether the session with the folder `own` is archived; `modified` is when its transcript last changed."""
    found = read_sidecar(os.path.join(own, ARCHIVED))
    if found.get("archived") is not True:
        return False
    at = _milliseconds(found.get("at"))
    return at is None or modified <= at or _last_prompt_at(own + TRANSCRIPT) <= at


def _milliseconds(at: object) -> int | None:
    if isinstance(at, str):
        return milliseconds(at)
    return int(at) if isinstance(at, int | float) else None


def _last_prompt_at(path: str) -> int:
    """The time of the user's last prompt; 0 if there is none."""
    last = 0
    try:
        descriptor = open_transcript(path, os.O_RDONLY)
    except OSError:
        return last
    try:
        for _, block, size in lines.read_blocks(descriptor):
            for _, line, _ in lines.split(block[:size]):
                if b'"user"' in line:
                    last = max(last, *map(_prompt_at, records_in(line)), 0)
    finally:
        os.close(descriptor)
    return last


def _prompt_at(record: Record) -> int:
    is_prompt = opening_of_record(record) not in (None, NO_OPENING)
    return (milliseconds(record.timestamp) or 0) if is_prompt and record.timestamp else 0


# A session without a title is listed under its first meaningful prompt.

PROMPT_CHARS = 200
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>")
# Texts that programs write in the user's name.
_NOT_A_PROMPT = re.compile(
    r"<local-command-stdout>|<session-start-hook>|<tick>|<goal>|\[Request interrupted by user[^\]]*\]"
    r"|<ide_opened_file>[\s\S]*</ide_opened_file>$|<ide_selection>[\s\S]*</ide_selection>$"
)
_PICTURES = {"image": "Image", "document": "Document"}


class Opening(msgspec.Struct, frozen=True):
    """What a message offers as a title: its prompt, else its slash command, else the kind of file it shows."""

    prompt: str | None = None
    command: str | None = None
    picture: str | None = None


NO_OPENING = Opening()


class _Block(msgspec.Struct):
    type: str = ""
    text: str | None = None


class _Message(msgspec.Struct):
    content: str | list[_Block] | None = None


_message = msgspec.json.Decoder(_Message)


def opening_of_message(message: bytes) -> Opening:
    """What a user's message offers as the title of its session."""
    blocks = _blocks(message)
    if any(block.type == "tool_result" for block in blocks):
        return NO_OPENING
    command = None
    for block in blocks:
        text = block.text.replace("\n", " ").strip() if block.type == "text" and block.text else ""
        if not text:
            continue
        found = _COMMAND.search(text)
        if found:
            command = command or found.group(1)
        elif not _NOT_A_PROMPT.match(text):
            return Opening(prompt=shorten_prompt(text))
    picture = next((_PICTURES[block.type] for block in blocks if block.type in _PICTURES), None)
    return Opening(command=command, picture=picture)


def shorten_prompt(text: str) -> str:
    """A prompt as lists show it."""
    return text if len(text) <= PROMPT_CHARS else text[:PROMPT_CHARS].rstrip() + "…"


def _blocks(message: bytes) -> list[_Block]:
    try:
        content = _message.decode(message).content
    except (ValueError, RecursionError):
        content = _loose_content(message)
    return [_Block("text", content)] if isinstance(content, str) else content or []


def _loose_content(message: bytes) -> str | list[_Block]:
    """The content of a message with values of unexpected types."""
    found = lines.decode(message)
    content = found.get("content") if isinstance(found, dict) else None
    if isinstance(content, str):
        return content
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [(block.get("type"), block.get("text")) for block in blocks]
    return [_Block(str(kind), text if isinstance(text, str) else None) for kind, text in texts]
