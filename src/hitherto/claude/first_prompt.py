"""What a session is called when nobody named it: its first meaningful prompt."""

from __future__ import annotations

import re

import msgspec

from hitherto.claude import lines

LENGTH = 200
_COMMAND = re.compile(r"<command-name>(.*?)</command-name>")
# What programs say in the user's place.
_NOT_A_PROMPT = re.compile(
    r"<local-command-stdout>|<session-start-hook>|<tick>|<goal>|\[Request interrupted by user[^\]]*\]"
    r"|<ide_opened_file>[\s\S]*</ide_opened_file>$|<ide_selection>[\s\S]*</ide_selection>$"
)
_PICTURES = {"image": "Image", "document": "Document"}


class Opening(msgspec.Struct, frozen=True):
    """What a message has to offer as a name: a prompt, else the command it gives, else the kind of thing it shows."""

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


def opening(message: bytes) -> Opening:
    """What the message of a user's record has to offer as the name of its session."""
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
            return Opening(prompt=shortened(text))
    picture = next((_PICTURES[block.type] for block in blocks if block.type in _PICTURES), None)
    return Opening(command=command, picture=picture)


def shortened(text: str) -> str:
    """A prompt as it is shown in a list."""
    return text if len(text) <= LENGTH else text[:LENGTH].rstrip() + "…"


def _blocks(message: bytes) -> list[_Block]:
    try:
        content = _message.decode(message).content
    except (ValueError, RecursionError):
        content = _loose_content(message)
    return [_Block("text", content)] if isinstance(content, str) else content or []


def _loose_content(message: bytes) -> str | list[_Block]:
    """The content of a message that is not quite as messages are."""
    found = lines.decode(message)
    content = found.get("content") if isinstance(found, dict) else None
    if isinstance(content, str):
        return content
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    texts = [(block.get("type"), block.get("text")) for block in blocks]
    return [_Block(str(kind), text if isinstance(text, str) else None) for kind, text in texts]
