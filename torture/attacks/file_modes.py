"""What the program leaves on the disk when whoever starts it lets everybody read and write everything."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from tests.sources.damage import TEXTS, WRITTEN
from torture.trial.commands import command, served
from torture.trial.program import Environment
from torture.trial.row import Outcome, Setting

OPEN = 0
"""The mask of files that takes no right away."""


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Start every command that writes, without a mask, and look at all that is there then."""
    home = setting.folder / "home"
    home.mkdir(mode=0o700)
    claude = WRITTEN["claude"].save(home / ".claude", 1, b"".join(WRITTEN["claude"].lines(1, TEXTS)))
    theirs = {claude, *claude.parents}
    ran = [_run(home, environment, *words) for words in _before(home)]
    with served(home, environment, umask=OPEN) as server:
        assert server.post(b'{"jsonrpc":"2.0","id":1,"method":"session.list"}').status == 200
        while_running = list(_open(home, theirs))
    if not setting.short:
        ran += [_run(home, environment, *words) for words in _after(home)]
        _acp(home, environment)
    left = {*while_running, *_open(home, theirs)}
    seen = sum(1 for path in home.rglob("*") if path not in theirs)
    failed = [each for each in ran if each]
    for trouble in (*map(str, sorted(left)), *failed):
        setting.say(trouble)
    figure = f"{len(left)} of {seen} files and folders are open to others, after {len(ran) + 1} commands without a mask"
    return Outcome(met=not left and not failed and seen > 3, figure=figure, counts={"inputs": len(ran) + 1})


def _before(home: Path) -> Iterator[tuple[str, ...]]:
    yield ("import", str(_export(home)))
    yield ("backup", str(home / "copies" / "copy.db"))


def _after(home: Path) -> Iterator[tuple[str, ...]]:
    yield ("token", "create", "--owner", "bob")
    for form in ("json", "jsonl", "markdown", "html"):
        yield ("export", "--all", "--format", form, "-o", str(home / f"export.{form}"))
    yield ("export", "--all", "-o", str(home / "export.jsonl"), "--force")
    yield ("sync",)
    yield ("doctor",)
    yield ("new", "--no-cwd")
    yield ("search", "message")
    yield ("stats",)


def _export(home: Path) -> Path:
    file = home / "given.json"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": "mine"}]}))
    file.chmod(0o600)
    (home / "copies").mkdir(mode=0o700)
    return file


def _run(home: Path, environment: Environment, *words: str) -> str:
    """What went wrong, if something did."""
    ran = command(home, environment, *words, umask=OPEN)
    return "" if ran.returncode == 0 else f"{' '.join(words)}: {ran.stderr.decode()}"


def _acp(home: Path, environment: Environment) -> None:
    asked = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"id": 2, "method": "session/new", "params": {"cwd": str(home), "mcpServers": []}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in asked)
    ran = command(home, environment, "acp", given=lines.encode(), umask=OPEN)
    assert b"sessionId" in ran.stdout, ran.stderr


def _open(home: Path, theirs: set[Path]) -> Iterator[Path]:
    """What others may read or write; the files of another agent are as it made them."""
    for folder, folders, files in os.walk(home):
        for path in (Path(folder, name) for name in (*folders, *files)):
            if path not in theirs and stat.S_IMODE(path.lstat().st_mode) & 0o077:
                yield path
