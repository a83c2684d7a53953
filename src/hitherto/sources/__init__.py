"""The agents whose own files sync reads, one package each. `port` says what a source is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from hitherto.claude.paths import config_home
from hitherto.errors import InvalidInput
from hitherto.settings import SOURCES, read_settings
from hitherto.sources.claude.source import ClaudeSource
from hitherto.sources.codex.source import CodexSource
from hitherto.sources.gemini.source import GeminiSource
from hitherto.sources.goose.source import GooseSource
from hitherto.sources.goose.source import home_in as goose_home
from hitherto.sources.openclaw.source import OpenclawSource
from hitherto.sources.opencode.source import OpencodeSource
from hitherto.sources.opencode.source import home_in as opencode_home
from hitherto.sources.pi.source import PiSource
from hitherto.sources.port import Source

Environ = Mapping[str, str]


class Agent(NamedTuple):
    """An agent: its name for people, its default folder, and how to make a source for a folder."""

    title: str
    home: Callable[[Environ], Path]
    at: Callable[[Path], Source]


def _under(variable: str, otherwise: str, below: str = "") -> Callable[[Environ], Path]:
    """The folder that a variable names, else one in the home folder, followed by `below`."""
    return lambda environ: Path(environ.get(variable) or Path.home() / otherwise) / below


AGENTS: dict[str, Agent] = {
    "claude": Agent("Claude Code", lambda _: config_home(), ClaudeSource),
    "codex": Agent("Codex", _under("CODEX_HOME", ".codex"), CodexSource),
    "gemini": Agent("Gemini CLI", _under("GEMINI_CLI_HOME", "", ".gemini"), GeminiSource),
    "goose": Agent("goose", goose_home, GooseSource),
    "openclaw": Agent("OpenClaw", _under("OPENCLAW_STATE_DIR", ".openclaw"), OpenclawSource),
    "opencode": Agent("opencode", opencode_home, OpencodeSource),
    "pi": Agent("Pi", _under("PI_CODING_AGENT_DIR", ".pi/agent", "sessions"), PiSource),
}
"""Every agent that sync can read. A new one is a package and a line here."""


def local_sources(environ: Environ = os.environ) -> list[Source]:
    """The sources of this machine, as `HITHERTO_SOURCES` chooses them; their folders need not exist."""
    return list(_chosen(read_settings(environ).sources, environ))


def _chosen(setting: str, environ: Environ) -> Iterator[Source]:
    """`claude, pi`: these only; `-pi`: all but this; `pi=FOLDER`: that folder too."""
    words = [word.strip() for word in setting.split(",") if word.strip()]
    only = {word for word in words if "=" not in word and not word.startswith("-")}
    without = {word[1:].strip() for word in words if "=" not in word and word.startswith("-")}
    more = [
        (name.strip(), folder.strip())
        for name, sign, folder in (word.partition("=") for word in words)
        if sign
    ]
    for name in (*only, *without, *(name for name, _ in more)):
        if name not in AGENTS:
            raise InvalidInput(f"{SOURCES} names an unknown agent {name!r:.40}; use: {', '.join(AGENTS)}")
    for name, folder in more:
        if not folder:
            raise InvalidInput(f"{SOURCES} has no folder for {name}: write {name}=FOLDER")
    for name, agent in AGENTS.items():
        if name not in without and (not only or name in only):
            yield agent.at(agent.home(environ))
    for name, folder in more:
        yield AGENTS[name].at(Path(folder).expanduser())


__all__ = ["AGENTS", "Agent", "Source", "local_sources"]
