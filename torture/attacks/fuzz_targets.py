"""Coverage-guided fuzzing of everything that reads what others wrote: `python -m torture.attacks.fuzz_targets TARGET FOLDER …`.

Each target takes any bytes and may raise nothing but what its contract says. The options behind the folder are those of
libFuzzer. Every so many inputs, the memory of the process is noted in the folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import atheris

with atheris.instrument_imports(include=["hitherto"], enable_loader_override=False):
    from hitherto.acp.agent.methods import REQUESTS
    from hitherto.errors import HithertoError, InvalidCursor
    from hitherto.exports.read import unfolded
    from hitherto.gateway.dispatch.method import Context, answer
    from hitherto.gateway.methods import METHODS
    from hitherto.model import LOCAL
    from hitherto.rpc.errors import Failure
    from hitherto.rpc.frames import BadFrame, decode_params, has_id, key_of, params_of, read_frame, read_head
    from hitherto.rpc.transport import FrameTooLong, Lines
    from hitherto.secrets import redact
    from hitherto.service import Sessions
    from hitherto.sources import Source
    from hitherto.sources.goose.source import GooseSource
    from hitherto.sources.opencode.source import OpencodeSource
    from hitherto.stores import connector
    from hitherto.values.cursors import open_cursor, seal_cursor
    from hitherto.values.query.language import parse_query

import msgspec

from tests.acp.agent.test_hostile_input import FRAMES
from tests.gateway.methods.asker import Asker, token
from tests.gateway.methods.test_access import request
from tests.sources.damage import TEXTS, WRITTEN
from tests.sources.goose.goose_files import GooseWriter
from tests.sources.goose.goose_files import text as goose_text
from tests.sources.opencode.opencode_files import OpencodeWriter
from tests.sources.opencode.opencode_files import text as opencode_text

SECRET = b"s" * 32
INTERNAL = -32603
NOTED = 200
"""So many inputs lie between two looks at the memory."""
LINE = 4_096

Take = Callable[[bytes], None]


class Target(NamedTuple):
    """What is fuzzed: given a folder of its own, what takes an input, and inputs to begin with."""

    take: Callable[[Path], Take]
    seeds: Callable[[], list[bytes]]


# Messages


def _parser(_: Path) -> Take:
    shapes = [*(each.params for each in METHODS.values()), *(each.params for each in REQUESTS.values())]
    decoders = [msgspec.json.Decoder(shape) for shape in shapes]

    def take(data: bytes) -> None:
        try:
            frame = read_frame(data)
        except BadFrame as bad:
            json.loads(bad.answer)
            return
        if has_id(frame):
            hash(key_of(frame.id))
        for decoder in decoders:
            with suppress(Failure):
                decode_params(decoder, params_of(frame))

    return take


def _framing(_: Path) -> Take:
    def take(data: bytes) -> None:
        size, rest = (data[0] % 64 + 1 if data else 1), data[1:]
        lines = Lines(LINE)
        for at in range(0, len(rest), size):
            lines.feed(rest[at : at + size])
        lines.finish()
        whole = [line for line in rest.split(b"\n") if line.strip() or len(line) > LINE]
        found = lines.take_all()
        assert len(found) == len(whole)
        for line, expected in zip(found, whole, strict=True):
            assert isinstance(line, FrameTooLong) == (len(expected) > LINE)
            read_head(line.head if isinstance(line, FrameTooLong) else line)

    return take


def _methods(_: Path) -> Take:
    """The name of a method, a zero, its parameters."""
    loop = asyncio.new_event_loop()
    store = loop.run_until_complete(connector("memory:")("memory:", None).__aenter__())
    asker = Asker(Sessions(store))
    loop.run_until_complete(asker.say("one", "two"))
    names = sorted(METHODS)

    def take(data: bytes) -> None:
        context = Context(sessions=asker.context.sessions, token=token("ann"))
        name = names[data[0] % len(names)] if data else names[0]
        try:
            loop.run_until_complete(answer(METHODS, context, name, data[1:] or b"{}"))
        except Failure as failure:
            if failure.code == INTERNAL:
                raise

    return take


def _cursor(_: Path) -> Take:
    good = seal_cursor(SECRET, "ann", ["find"], [1, "x"])

    def take(data: bytes) -> None:
        text = data.decode("latin-1")
        try:
            open_cursor(SECRET, "ann", ["find"], text, list)
        except InvalidCursor:
            return
        assert text == good

    return take


# What is brought in


def _importer(_: Path) -> Take:
    loop = asyncio.new_event_loop()
    store = loop.run_until_complete(connector("memory:")("memory:", None).__aenter__())
    sessions = Sessions(store)

    def take(data: bytes) -> None:
        lines = data.split(b"\n")
        for trusted in (True, False):
            with suppress(HithertoError):
                made = loop.run_until_complete(sessions.import_(LOCAL, lines, trusted=trusted))
                loop.run_until_complete(sessions.delete(LOCAL, made.id))
        with suppress(HithertoError):
            unfolded(lines)

    return take


def _lines(name: str) -> Callable[[Path], Take]:
    """The transcripts of an agent that writes lines."""
    written = WRITTEN[name]

    def make(folder: Path) -> Take:
        source = written.source(folder)
        packed = written.packs

        def take(data: bytes) -> None:
            path = written.save(folder, 1, data, packed=packed and data[:4] == b"\x28\xb5\x2f\xfd")
            _read(source)
            path.unlink()

        return take

    return make


def _read(source: Source) -> None:
    for found in source.find():
        with suppress(OSError, ValueError):
            reading = source.read(found, None)
            source.read(found, None if not reading.state else _known(found.stamp, reading.state))


def _known(stamp: Any, state: bytes) -> Any:
    from hitherto.sources.port import Known

    return Known(stamp, state)


def _goose(folder: Path) -> Take:
    written = GooseWriter(folder)
    written.session()
    written.user("one")
    source = GooseSource(folder)

    def take(data: bytes) -> None:
        content, _, seen = data.decode("latin-1").partition("\0")
        written.run("UPDATE messages SET content_json = ?, metadata_json = ?", content, seen)
        written.run("UPDATE sessions SET model_config_json = ?, name = ?", seen, content[:100])
        _read(source)

    return take


def _opencode(folder: Path) -> Take:
    written = OpencodeWriter(folder)
    written.session()
    written.user("one")
    written.row("user")
    source = OpencodeSource(folder)

    def take(data: bytes) -> None:
        message, _, part = data.decode("latin-1").partition("\0")
        written.run("UPDATE message SET data = ?", message)
        written.run("UPDATE part SET data = ?", part)
        written.run("UPDATE session_message SET data = ?, type = ?", message, part[:20])
        written.run("UPDATE session SET revert = ?, summary_diffs = ?", part, message)
        _read(source)

    return take


# Texts


def _search(_: Path) -> Take:
    def take(data: bytes) -> None:
        with suppress(HithertoError):
            parse_query(data.decode("utf-8", "replace"))

    return take


def _secrets(_: Path) -> Take:
    from collections import Counter

    def take(data: bytes) -> None:
        redact(data.decode("utf-8", "replace"), Counter())

    return take


# Inputs to begin with


def _exported() -> list[bytes]:
    """A session in each of the forms that can be brought in."""

    async def made() -> list[bytes]:
        async with connector("memory:")("memory:", None) as store:
            asker = Asker(Sessions(store), "local")
            said = await asker.say("one", "two")
            await asker.ask("session.compact", session_key=said["session_key"])
            lines = [line async for line in asker.context.sessions.export(LOCAL, said["session_id"])]
            files = [
                b"".join(
                    [
                        piece
                        async for piece in asker.context.sessions.transfer.export_file(
                            LOCAL, said["session_id"], kind
                        )
                    ]
                )
                for kind in ("json", "jsonl")
            ]
            return [b"\n".join(lines), *files]

    return [*asyncio.run(made()), b'{"messages": [{"role": "user", "content": "mine"}]}']


def _asked() -> list[bytes]:
    return [
        bytes([number]) + json.dumps(request(name)).encode() for number, name in enumerate(sorted(METHODS))
    ]


def _written(name: str) -> Callable[[], list[bytes]]:
    return lambda: [b"".join(WRITTEN[name].lines(1, TEXTS))]


TARGETS: Mapping[str, Target] = {
    "parser": Target(_parser, lambda: [each[0] for each in FRAMES if len(each[0]) < LINE]),
    "framing": Target(
        _framing, lambda: [b"\x05{}\n\n[]\n" + b"x" * LINE, b'\x3f{"jsonrpc":"2.0","id":1,"method":"m",']
    ),
    "methods": Target(_methods, _asked),
    "cursor": Target(_cursor, lambda: [seal_cursor(SECRET, "ann", ["find"], [1, "x"]).encode()]),
    "importer": Target(_importer, _exported),
    **{f"source {name}": Target(_lines(name), _written(name)) for name in WRITTEN},
    "source goose": Target(
        _goose, lambda: [json.dumps([goose_text("one")]).encode() + b'\0{"userVisible":true}']
    ),
    "source opencode": Target(
        _opencode, lambda: [b'{"role":"user"}\0' + json.dumps(opencode_text("one")).encode()]
    ),
    "search": Target(_search, lambda: [b'title:"a b" tag:x role:user -not al* (x OR y)']),
    "secrets": Target(_secrets, lambda: [b"password = hunter22 Authorization: Bearer abcdefghijklmnop"]),
}
"""Everything that is fuzzed, by its name."""


def main(words: list[str]) -> None:
    name, folder, *options = words
    target, place = TARGETS[name], Path(folder)
    (place / "seeds").mkdir()
    (place / "home").mkdir()
    for number, seed in enumerate(target.seeds()):
        (place / "seeds" / str(number)).write_bytes(seed)
    take, notes, count, least = target.take(place / "home"), place / "notes", 0, 0

    def one(data: bytes) -> None:
        nonlocal count, least
        take(data)
        count += 1
        if count % NOTED == 0:
            now = _resident()
            least = least or now
            notes.write_text(json.dumps({"inputs": count, "grown": now - least}))

    atheris.Setup([name, *options, str(place / "seeds")], one)
    atheris.Fuzz()


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main(sys.argv[1:])
