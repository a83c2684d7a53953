"""Small repositories in which a person and a session have written."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hitherto.model import LOCAL, Draft, Text, ToolCall, ToolResult
from hitherto.projects import checkout_of
from hitherto.service import Sessions
from tests.support.labelled_commits import git

PERSON = (
    "def opening_hours(weekday, holidays):",
    "    return SCHEDULE[weekday] if weekday not in holidays else None",
)
AGENT = (
    "def shipping_costs(basket, country):",
    "    weight_in_grams = sum(item.weight * item.amount for item in basket)",
    "    return tariff.lookup(country, weight_in_grams)",
)
PROMPT = "Please compute what shipping costs"


class Wrote(NamedTuple):
    """A session, and its message that wrote lines."""

    session: str
    message: str


def repository(folder: Path, path: str = "src/shop.py", lines: tuple[str, ...] = PERSON) -> Path:
    """A repository with one commit, by a person."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    if lines:
        write(folder / path, lines)
        commit(folder)
    return folder


def write(path: Path, lines: tuple[str, ...], end: str = "\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(f"{line}{end}" for line in lines).encode())


def commit(folder: Path) -> str:
    git(folder, "add", "-A")
    git(folder, "-c", "protocol.file.allow=always", "commit", "-qm", "a commit")
    return git(folder, "rev-parse", "HEAD").strip()


async def edited(
    sessions: Sessions, folder: Path, path: str = "src/shop.py", *, placed: bool = False
) -> Wrote:
    """A session in the folder says that it wrote the agent's lines at the end of a file."""
    seen = checkout_of(str(folder)) if placed else None
    project = None if seen is None else await sessions.projects.place(LOCAL, str(folder), seen)
    made = await sessions.create(LOCAL, cwd=str(folder), project=project)
    given = {
        "file_path": str(folder / path),
        "old_string": "",
        "new_string": "".join(f"{each}\n" for each in AGENT),
    }
    call = ToolCall(id="c1", name="Edit", input=given, kind="edit")
    drafts = [
        Draft(role="user", parts=(Text(text=PROMPT),)),
        Draft(role="assistant", parts=(call,), model="claude-opus-4-5"),
        Draft(role="tool", parts=(ToolResult(id="c1", content=(Text(text="done"),)),)),
    ]
    return Wrote(made.id, (await sessions.append(LOCAL, made.id, drafts)).entries[1])


def cloned(origin: Path, target: Path, *options: str) -> Path:
    git(origin.parent, "clone", "-q", *options, f"file://{origin}", str(target))
    return target
