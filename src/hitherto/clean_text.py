"""Text without anything that could command a terminal, turn the text around it, or hide in it. Pure."""

from __future__ import annotations

import json
import re

# Sequences that colour, move or name things; a string without its end is not one, or it would hide all that follows.
_SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]+[0-~]"
)
_BREAKS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
# They turn the direction of the text around them, or are letters that nobody sees.
_UNSEEN = (
    "\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
_UNSAFE = re.compile(f"[{_CONTROLS}{_UNSEEN}]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_SPACES = re.compile("[\t\n]+")


def clean(text: str) -> str:
    """The text in one line without terminal sequences, control, direction and unseen characters."""
    return _SPACES.sub(" ", clean_lines(text))


def clean_lines(text: str) -> str:
    """The same for a text of several lines; newlines and tabs stay."""
    text = _BREAKS.sub("\n", _SEQUENCES.sub("", text))
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", _UNSAFE.sub("", text))


def clean_json(line: bytes) -> str:
    """A line of JSON in which the same characters are escapes; it means what it meant."""
    return _UNSAFE.sub(_escape, line.decode("utf-8", "replace"))


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
