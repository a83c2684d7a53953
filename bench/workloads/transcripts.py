"""Other agents' sessions, made up: many of the usual sizes to be read, or very many small ones only to be found.

The text is of the same kind in all of them. What agents write beside the conversation is there as far as their own formats
have it: Claude Code keeps nine bytes beside it for each byte of it, Codex tells most of it twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from hitherto.sources import AGENTS, Source
from tests.claude import transcripts
from tests.claude.transcripts import Babble, size_of
from tests.sources.codex import codex_files
from tests.sources.codex.codex_files import CodexWriter
from tests.sources.database_rows import Database
from tests.sources.gemini import gemini_files
from tests.sources.gemini.gemini_files import GeminiWriter
from tests.sources.goose import goose_files
from tests.sources.goose.goose_files import GooseWriter
from tests.sources.openclaw import openclaw_files
from tests.sources.openclaw.openclaw_files import OpenclawWriter
from tests.sources.opencode.opencode_files import OpencodeWriter
from tests.sources.pi.pi_files import PiWriter

D = TypeVar("D", bound=Database)

INSTRUCTIONS = 12_000
"""So many characters of instructions stand at the beginning of a rollout."""
SEALED = 2_500
"""So long is a thought that only its maker can read."""

FILES_SHOWN = 100
OUTPUTS = 150
EDITS = 400
"""How many of them a transcript has that consists of them."""

IN_FOLDER = 50
DAYS = 365

Grow = Callable[[Path, int], None]


class Format(NamedTuple):
    """What an agent's sessions lie in, and how many of them are made."""

    title: str
    agent: str
    grow: Grow

    def source(self, home: Path) -> Source:
        """The source that reads them."""
        return AGENTS[self.agent].at(home)


class Turn(NamedTuple):
    """Something is asked, looked up a few times, and answered."""

    asked: str
    looked_up: tuple[tuple[str, str], ...]
    answered: str


def turns(rng: random.Random, babble: Babble, size: int) -> Iterator[Turn]:
    """Turns of about `size` characters in all."""
    while size > 0:
        calls = [(babble.text(60), babble.text(rng.randrange(50, 600))) for _ in range(rng.randrange(1, 5))]
        turn = Turn(babble.text(rng.randrange(20, 300)), tuple(calls), babble.text(rng.randrange(100, 1_500)))
        size -= len(turn.asked) + len(turn.answered) + sum(len(told) + 500 for _, told in calls) + 800
        yield turn


def _conversations(count: int, share: float) -> Iterator[tuple[str, list[Turn], Babble]]:
    """So many sessions' ids and turns; `share` is how much of a file is made of them."""
    rng = random.Random(3)
    babble = Babble(rng)
    for number in range(count):
        yield session_id(number), list(turns(rng, babble, int(size_of(rng, number) * share))), babble


def session_id(number: int) -> str:
    """An id of the kind that most agents give."""
    return f"{number:08x}-1111-7000-8000-{number * 7_919:012x}"


def claude(home: Path, count: int) -> None:
    """Transcripts of Claude Code, a tenth of them conversation."""
    for _ in transcripts.grow(home / "projects", count):
        pass


def claude_outputs(home: Path, count: int) -> None:
    """Long transcripts of Claude Code: most of each is what tools answered, in full."""
    for number in range(count):
        rng = random.Random(number)
        writer = transcripts.Writer(session_id(number), f"/srv/project-{number}", rng=rng)
        babble = Babble(rng)
        for _ in range(OUTPUTS):
            writer.user(babble.text(rng.randrange(20, 300)))
            _, call = writer.call("Bash", {"command": f"grep -rn {_identifier(rng)} src"})
            writer.result(call, "\n".join(_listing(rng, babble) for _ in range(rng.randrange(50, 600))))
            writer.say(babble.text(rng.randrange(100, 1_500)))
        writer.save(home / "projects")


def claude_edits(home: Path, count: int) -> None:
    """Transcripts of Claude Code that consist of edits."""
    for number in range(count):
        rng = random.Random(number)
        writer = transcripts.Writer(session_id(number), f"/srv/project-{number}", rng=rng)
        babble = Babble(rng)
        writer.user("write it")
        for part in range(EDITS):
            path = f"/srv/project-{number}/src/part{part % 20}.py"
            old, new = (
                "\n".join(_listing(rng, babble) for _ in range(rng.randrange(2, 60))) for _ in range(2)
            )
            _, call = writer.call("Edit", {"file_path": path, "old_string": old, "new_string": new})
            writer.result(call, f"The file {path} has been updated.")
        writer.save(home / "projects")


def _identifier(rng: random.Random) -> str:
    return "".join(
        rng.choice(("get", "set", "read", "Parse", "Index", "Name", "File", "Value")) for _ in range(3)
    )


def _listing(rng: random.Random, babble: Babble) -> str:
    """A line as tools show it: a place in one of some hundred files, and some code."""
    number = rng.randrange(FILES_SHOWN)
    place = f"src/{transcripts.WORDS[number % 40]}/readFile{number}.py:{rng.randrange(2_000)}"
    return f"{place}:    {_identifier(rng)} = self.{_identifier(rng)}({babble.text(30)})".replace("\n", " ")


def codex(home: Path, count: int) -> None:
    """Rollouts of today's Codex."""
    for id, talk, babble in _conversations(count, 0.45):
        writer = CodexWriter("paginated", id, base_instructions={"text": babble.text(INSTRUCTIONS)})
        for turn in talk:
            writer.user(turn.asked)
            for number, (command, output) in enumerate(turn.looked_up):
                writer.item("reasoning", summary=[], encrypted_content="gAAAAB" + "x7Qz" * (SEALED // 4))
                writer.run(f"call_{len(writer.records)}_{number}", command, output)
            writer.say(turn.answered)
            writer.end()
        writer.save(home)


def gemini(home: Path, count: int) -> None:
    """Logs of Gemini CLI."""
    gemini_files.mark(home)
    for id, talk, _ in _conversations(count, 0.9):
        writer = GeminiWriter(id)
        for turn in talk:
            writer.user(turn.asked)
            for command, output in turn.looked_up:
                own = f"c{len(writer.records)}"
                call = gemini_files.call("run_shell_command", {"command": command}, output, own)
                writer.say("", toolCalls=[call])
            writer.say(turn.answered)
        writer.save(home)


def _pi(id: str, talk: list[Turn]) -> PiWriter:
    writer = PiWriter(id)
    for turn in talk:
        writer.user(turn.asked)
        for command, output in turn.looked_up:
            own = f"call_{len(writer.records)}"
            writer.answer({"type": "toolCall", "id": own, "name": "bash", "arguments": {"command": command}})
            told = {"role": "toolResult", "toolCallId": own, "toolName": "bash", "isError": False}
            writer.add("message", message={**told, "content": [{"type": "text", "text": output}]})
        writer.say(turn.answered)
    return writer


def pi(home: Path, count: int) -> None:
    """Trees of Pi, without a branch."""
    for id, talk, _ in _conversations(count, 0.8):
        _pi(id, talk).save(home)


def openclaw_in_files(home: Path, count: int) -> None:
    """Transcripts of OpenClaw as it kept them before it had a database."""
    for id, talk, _ in _conversations(count, 0.8):
        openclaw_files.save(home, _pi(id, talk))


# Very many small ones: fifty in a folder, as a project has them, or as a day has them in a year.


def small_claude(home: Path, count: int) -> None:
    for number in range(count):
        writer = transcripts.Writer(session_id(number), f"/srv/project-{number // IN_FOLDER}")
        writer.user("hello")
        writer.save(home / "projects")


def small_codex(home: Path, count: int) -> None:
    for number in range(count):
        writer = CodexWriter("paginated", session_id(number)).talk("hello")
        name = f"rollout-2026-01-01T00-00-00-{writer.session_id}.jsonl"
        day = number * DAYS // count
        _write(
            home / "sessions" / "2026" / f"{day // 31 + 1:02d}" / f"{day % 31 + 1:02d}" / name, writer.data()
        )
    codex_files.name_threads(home, {session_id(number): f"Thread {number}" for number in range(count)})


def small_gemini(home: Path, count: int) -> None:
    for number in range(count):
        writer = GeminiWriter(session_id(number))
        writer.user("hello")
        writer.save(home, slug=f"project-{number // IN_FOLDER}")


def small_pi(home: Path, count: int) -> None:
    for number in range(count):
        name = f"2026-11-01T10-00-00-000Z_{session_id(number)}.jsonl"
        _write(home / f"--srv-project-{number // IN_FOLDER}--" / name, _said(number).data())


def small_openclaw_files(home: Path, count: int) -> None:
    for number in range(count):
        openclaw_files.save(home, _said(number), f"agent-{number // IN_FOLDER}")


def small_openclaw(home: Path, count: int) -> None:
    with _at_once(OpenclawWriter(home)) as database:
        for number in range(count):
            database.node(session_id(number), f"agent:main:{number}")
            database.window(session_id(number), f"agent:main:{number}")
            database.write(_said(number))


def small_goose(home: Path, count: int) -> None:
    with _at_once(GooseWriter(home)) as database:
        for number in range(count):
            told = {"created_at": "2026-11-01 10:00:00", "updated_at": "2026-11-01 10:00:00"}
            database.add("sessions", id=f"s{number}", working_dir=goose_files.CWD, **told)
            database.user("hello", f"s{number}")


def small_opencode(home: Path, count: int) -> None:
    with _at_once(OpencodeWriter(home)) as database:
        for number in range(count):
            database.user("hello", database.session(f"ses_{number:08x}"))


def _said(number: int) -> PiWriter:
    writer = PiWriter(session_id(number))
    writer.user("hello")
    return writer


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@contextmanager
def _at_once(database: D) -> Iterator[D]:
    """All rows in one transaction; then nothing is beside the database."""
    database.run("BEGIN")
    yield database
    database.run("COMMIT")
    database.close()


FILES = (
    Format("Claude Code", "claude", claude),
    Format("Codex", "codex", codex),
    Format("Gemini CLI", "gemini", gemini),
    Format("Pi", "pi", pi),
    Format("OpenClaw, files", "openclaw", openclaw_in_files),
)
"""Files of lines."""
SMALL = (
    Format("Claude Code", "claude", small_claude),
    Format("Codex", "codex", small_codex),
    Format("Gemini CLI", "gemini", small_gemini),
    Format("Pi", "pi", small_pi),
    Format("OpenClaw, files", "openclaw", small_openclaw_files),
    Format("OpenClaw", "openclaw", small_openclaw),
    Format("goose", "goose", small_goose),
    Format("opencode", "opencode", small_opencode),
)
"""All that can be found."""
