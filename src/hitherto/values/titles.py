"""Titles: from what a prompt says, never from what a program put before it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
_SLASH_COMMAND = re.compile(r"/[A-Za-z][\w:.-]*(?=\s|$)")
# How Claude Code writes down that a command was given, and what stood behind its name.
_COMMAND_BLOCK = ("<command-name>", "<command-message>", "<command-args>")
_FEW_WORDS = 2
"""With fewer words behind it, a command only sets something: `/model opus`."""
# What a program writes before a plan that somebody has agreed to.
_PLAN = re.compile(
    r"(?:please\s+)?(?:implement|execute|carry out|follow)\s+(?:the|this)\s+(?:following\s+|attached\s+|approved\s+)?plan"
    r"(?:\s+below)?\s*[:.]?\s*(?:\n|$)",
    re.IGNORECASE,
)
_PLAN_HEADING = re.compile(r"(?:implementation\s+)?plan\b\s*(?:[:\u2013\u2014-]\s*|$)", re.IGNORECASE)
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
    plain = _TERMINAL_CODES.sub("", text[:_MAX_CHARS])
    said = _command(plain) or _said(plain)
    if said.startswith("/") and (command := _SLASH_COMMAND.match(said)):
        return _shortened(clean_title(said)) if len(said[command.end() :].split()) >= _FEW_WORDS else None
    title = _shortened(_of_plan(said) if _PLAN.match(said) else _first_paragraph(said))
    return title if any(map(str.isalnum, title)) else None


def opening(text: str, chars: int) -> str | None:
    """The beginning of a prompt, as much as gives its title, of about so many characters; None if it gives none."""
    title = title_from(text)
    return title if title is None or title_from(text[:chars]) != title else text[:chars]


def stand_in(prompts: Iterable[str], answers: Iterable[str]) -> str | None:
    """A title for a conversation none of whose prompts gives one: a command as it was typed, or what was answered."""
    commands = (_command(text) or text.strip() for text in prompts)
    typed = (clean_title(text) for text in commands if _SLASH_COMMAND.match(text))
    return next(filter(None, typed), None) or next(filter(None, map(title_from, answers)), None)


def _command(text: str) -> str:
    """A slash command as it was typed, if the text begins with the marks of one; else ''."""
    if not text.lstrip("\ufeff \t\r\n").startswith(_COMMAND_BLOCK):
        return ""
    name, words = _between(text, "command-name"), _between(text, "command-args")
    return f"/{name.removeprefix('/')} {words}".rstrip() if name else ""


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()


def _of_plan(text: str) -> str:
    """The first line of a plan that says something, without the word for what it is."""
    rest = text[: 100 * TITLE_WIDTH]
    while (plan := _PLAN.match(rest)) is not None:
        rest = rest[plan.end() :].lstrip()
    lines = (_LINE_MARKS.sub("", line).strip() for line in rest.splitlines())
    named = (_PLAN_HEADING.sub("", line, count=1) for line in lines if not _UNDERLINE.match(line))
    return next((title for line in named if any(map(str.isalnum, title := clean_title(line)))), "")


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
