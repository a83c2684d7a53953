"""Titles: from what a prompt says, never from what a program put before it. Pure."""

from __future__ import annotations

import re

TITLE_WIDTH = 80
# Bounds for what a title is looked for in: more is not read.
_MAX_CHARS = 1_000_000
_MAX_BLOCKS = 100

# Controls separate words; marks that only turn or hide the text around them vanish.
_SEPARATING = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u2028\u2029\ud800-\udfff]+")
_UNSEEN = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]+")

_TERMINAL_CODES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")

_TAG = re.compile(r"<([A-Za-z][\w.:-]*)(?:\s[^<>]*)?(/?)>")
# Tags around what the user wrote; every other leading block was put there by a program.
_WRAPPERS = frozenset({"user_query", "user_request", "userrequest", "user_message", "pasted_content", "task"})

# Editors set the user's request under such a heading, behind a description of the open files.
_REQUEST_HEADING = re.compile(r"^#+ My request for [^\n:]{1,40}:", re.MULTILINE)
_FILE_INSTRUCTIONS = re.compile(r"# (?:AGENTS|CLAUDE|GEMINI)\.md instructions[^\n]*\n*", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\[(?:Image|Pasted text|Attachment|File)\b[^\]\n]{0,200}\]\s*")
_SLASH_COMMAND = re.compile(r"/[A-Za-z][\w:-]*(?=\s|$)")
_INJECTED = (
    "caveat: the messages below were generated",
    "[request interrupted by user",
    "this session is being continued from a previous conversation",
    "base directory for this skill:",
    "stop hook feedback",
    "unknown slash command",
    "unknown command:",
)
_NOT_A_PROMPT = frozenset({"warmup", "[no prompt]", "no prompt"})

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_LINE_MARKS = re.compile(r"^(?:\s*(?:#{1,6}|>|[-*+•‣◦]|\[[ xX]\])\s+)+")
_UNDERLINE = re.compile(r"^\s*(?:[-=*_#>~`+•]\s*)+$")


def clean_title(text: str) -> str:
    """The text as one line without terminal codes, control and direction characters, each run of white space one space."""
    plain = _TERMINAL_CODES.sub("", text)
    return " ".join(_UNSEEN.sub("", _SEPARATING.sub(" ", plain)).split())


def title_from(text: str) -> str | None:
    """A title of at most `TITLE_WIDTH` characters from a prompt; None if nobody wrote it or it says nothing."""
    said = _said(_TERMINAL_CODES.sub("", text[:_MAX_CHARS]))
    if not said or _SLASH_COMMAND.match(said):
        return None
    title = _shortened(_first_paragraph(said))
    return title if any(map(str.isalnum, title)) else None


def _said(text: str) -> str:
    """What is left of a prompt without the blocks that programs put before it; '' if all of it is injected."""
    text = text.replace("\ufeff", "").strip()
    if request := _REQUEST_HEADING.search(text):
        text = text[request.end() :].lstrip()
    for _ in range(_MAX_BLOCKS):
        rest = _without_block(text)
        if rest is None:
            break
        text = rest.lstrip()
    lowered = text[:100].lower()
    return "" if lowered.startswith(_INJECTED) or lowered in _NOT_A_PROMPT else text


def _without_block(text: str) -> str | None:
    """The text without the block that it starts with; None if it starts with none."""
    if placeholder := _PLACEHOLDER.match(text):
        return text[placeholder.end() :]
    if heading := _FILE_INSTRUCTIONS.match(text):
        return text[heading.end() :] if _TAG.match(text, heading.end()) else ""
    tag = _TAG.match(text)
    return _after_block(text, tag) if tag else None


def _after_block(text: str, tag: re.Match[str]) -> str | None:
    """The text without the block that `tag` opens; None if it is a lone tag that belongs to the prompt."""
    name = tag[1]
    if tag[2]:
        return text[tag.end() :]
    close = text.find(f"</{name}>", tag.end())
    if name.lower() in _WRAPPERS:
        return text[tag.end() : close if close >= 0 else None]
    if close >= 0:
        return text[close + len(name) + 3 :]
    # Programs write `<like_this>` or `<like-this>`: such a block was cut off. `<div>` is what people ask about.
    return "" if "_" in name or "-" in name else None


def _first_paragraph(text: str) -> str:
    """The first paragraph outside of code as one clean line; of the code if there is nothing else."""
    prose: list[str] = []
    code: list[str] = []
    fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
            continue
        if (lines := code if fenced else prose) is prose and prose and not line.strip():
            break
        if line.strip() and not _UNDERLINE.match(line):
            lines.append(_LINE_MARKS.sub("", line))
        if sum(map(len, prose)) > 4 * TITLE_WIDTH:
            break
    return clean_title(" ".join(prose or code[:1]))


def _shortened(line: str) -> str:
    if len(line) <= TITLE_WIDTH:
        return line
    cut = line[: TITLE_WIDTH - 1]
    gap = cut.rfind(" ") if line[TITLE_WIDTH - 1] != " " else len(cut)
    # A text without spaces, or with one word that fills half of the title, is cut within the word.
    return cut[: gap if gap > TITLE_WIDTH // 2 else None].rstrip(" ,;:.-–—") + "…"
