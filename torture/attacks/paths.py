"""Paths and links that lead out: by the tools of a session, by names over the gateway, in the folders of other agents."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import hitherto
from hitherto.model import LOCAL
from hitherto.sources import Source
from tests.engines.tools.bench import Bench
from tests.gateway.servers import serving
from tests.mutants import ROOT, Change
from tests.sources.agent_home import House
from tests.sources.damage import TEXTS, WRITTEN
from torture.trial.process_watch import exchange, noted, openings, watched
from torture.trial.program import Environment, apart, store_in
from torture.trial.row import Outcome, Setting

NAMES_OF_CONTROL = 40
SECRET, PLAIN = "quagga", "inside"
HANG_SECONDS = 20.0
STEPS = (
    "..",
    ".",
    "in",
    "out",
    "out_up",
    "up",
    "here",
    "hop",
    "...",
    "~",
    "beside",
    "root",
    "",
    "%2e%2e",
    "..\\",
)
ENDS = (
    "file",
    "file/",
    "file/.",
    "in/file",
    "new",
    "file\0",
    "file ",
    "file.",
    "CON",
    "file%00",
    "f" * 300,
    "\u2024\u2024",
)
STARTS = ("", "/", "//", "{beside}/", "{root}/", "{root}/../", "~/", "file://", "\\\\", "/proc/self/root{beside}/",
          "/proc/self/cwd/", "/dev/fd/0/", "{root}\uff0f", "./")  # fmt: skip
FIXED = (
    "/etc/passwd", "/etc/shadow", "/dev/zero", "/dev/stdin", "/proc/self/environ", "/proc/self/mem", "out", "out/",
    "out_file", "fifo", "dev", "loop", "in/hop/file", "{beside}", "{beside}/file", "..", "../..", "/", "~", "~root",
    "..\0", "\ud800", "\u202e", "-rf", "--help", "$(id)", "`id`", "*", "?", "a\nb", "C:\\Windows\\win.ini", "NUL",
)  # fmt: skip


def names(dice: random.Random, count: int) -> list[str]:
    """So many names, each of which leads out in some way, or looks as if it did."""
    found = dict.fromkeys(FIXED)
    while len(found) < count:
        steps = dice.choices(STEPS, k=dice.randrange(5))
        found[dice.choice(STARTS) + "/".join((*steps, dice.choice(ENDS)))] = None
    return dice.sample(list(found), count)


class Place(NamedTuple):
    """A root with links of all kinds, and what lies beside it."""

    root: Path
    beside: Path


def made(folder: Path) -> Place:
    """The two folders."""
    root, beside = folder / "root", folder / "beside"
    for each, text in ((root, PLAIN), (beside, SECRET)):
        (each / "in").mkdir(parents=True)
        (each / "file").write_text(text)
        (each / "in" / "file").write_text(text)
    links = {"out": str(beside), "out_up": "../beside", "out_file": str(beside / "file"), "here": ".", "up": "..",
             "in/hop": "../../beside", "loop": "loop", "dev": "/dev/zero"}  # fmt: skip
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    return Place(root, beside)


# Tools


TOOLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "read_file": lambda name: {"path": name},
    "write_file": lambda name: {"path": name, "content": "changed"},
    "edit_file": lambda name: {"path": name, "old": SECRET, "new": "changed"},
    "list_files": lambda name: {"path": name, "pattern": "**/*"},
    "search_files": lambda name: {"path": name, "pattern": "."},
}
QUICK = ("read_file", "write_file", "edit_file")
"""Those that start nothing: the tool that searches has a process of its own."""


def by_tools(folder: str, given: list[str], tools: list[str]) -> dict[str, Any]:
    """Give each name to each tool. What was opened outside, what was told of it, and how many hung."""
    place = made(Path(folder))
    with openings(place.beside, place.beside / "in") as opened:
        told, hung = asyncio.run(_given(Bench(place.root), place, given, tools))
    return {"opened": opened, "told": told, "hung": hung}


async def _given(
    bench: Bench, place: Place, given: Sequence[str], tools: Sequence[str]
) -> tuple[list[str], int]:
    told: list[str] = []
    hung = 0
    for name in given:
        path = name.replace("{root}", str(place.root)).replace("{beside}", str(place.beside))
        for tool in tools:
            try:
                ran = await asyncio.wait_for(bench.call(tool, **TOOLS[tool](path)), HANG_SECONDS)
            except TimeoutError:
                hung += 1
            else:
                told += [f"{tool} {name!r}"] if SECRET in str(ran.content) else []
    return told, hung


# Races


@contextmanager
def swap_constantly(one: Path, other: Path) -> Iterator[None]:
    """While this runs, another process lets the two change places all the time."""
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            while os.getppid() != 1:
                exchange(one, other)
        os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status):
        raise RuntimeError("the two could not change places")


def races(folder: str, count: int) -> dict[str, Any]:
    """Use paths of which a part is a folder now, a link out or a pipe then; and transcripts likewise."""
    place = made(Path(folder))
    spot, other = place.root / "swapped", place.root / "other"
    spot.mkdir()
    (spot / "file").write_text(PLAIN)
    other.symlink_to(place.beside)
    bench, took = Bench(place.root), 0.0
    said = b"".join(WRITTEN["claude"].lines(1, TEXTS))
    (place.beside / "in" / "file").write_bytes(said.replace(b"message", SECRET.encode()))
    with openings(place.beside, place.beside / "in") as opened:
        with swap_constantly(spot, other):
            took = asyncio.run(_raced(bench, ["swapped/file", "swapped/../swapped/file"], count // 3))
        file, link = place.root / "one", place.root / "two"
        file.write_text(PLAIN)
        link.symlink_to(place.beside / "file")
        with swap_constantly(file, link):
            took = max(took, asyncio.run(_raced(bench, ["one"], count // 3)))
        took = max(took, _transcripts(place, count - 2 * (count // 3)))
    return {"opened": opened, "slowest": took}


async def _raced(bench: Bench, paths: Sequence[str], count: int) -> float:
    slowest = 0.0
    for path, tool in itertools.islice(itertools.cycle(itertools.product(paths, QUICK)), count):
        began = time.monotonic()
        with suppress(OSError):
            await asyncio.wait_for(bench.call(tool, **TOOLS[tool](path)), HANG_SECONDS)
        slowest = max(slowest, time.monotonic() - began)
    return slowest


def _transcripts(place: Place, count: int) -> float:
    """A transcript that is a link out at one moment and a pipe at another, read so often."""
    written, home = WRITTEN["claude"], place.root / "agent"
    path = written.save(home, 1, b"".join(written.lines(1, TEXTS)))
    source, slowest = written.source(home), 0.0
    for target in (place.beside / "in" / "file", None):
        other = path.with_suffix(".aside")
        other.unlink(missing_ok=True)
        os.mkfifo(other) if target is None else other.symlink_to(target)
        with swap_constantly(path, other):
            for _ in range(count // 2):
                began = time.monotonic()
                for found in source.find():
                    with suppress(OSError, ValueError):
                        assert SECRET not in str(source.read(found, None).entries)
                slowest = max(slowest, time.monotonic() - began)
    return slowest


# Names over the gateway


FIELDS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("session.get", "session_key", {}),
    ("session.get", "session_id", {}),
    ("session.export", "session_key", {"format": "html"}),
    ("session.create", "cwd", {}),
    ("session.list", "cursor", {}),
    ("store.create", "session_id", {}),
    ("store.place", "cwd", {}),
    ("store.project_called", "name", {}),
)
ROUTES = ("/s/{}", "/static/x/{}", "/static/{}", "/message?session={}&id={}", "/{}")
READ = (
    *("/usr/lib", "/usr/share/zoneinfo", "/etc/localtime", "/dev/urandom", "/dev/null", "/etc/mime.types"),
    *(str(ROOT / part) for part in ("src", "tests", "torture")),
    *(sys.prefix, sys.base_prefix, *sysconfig.get_paths().values()),
)
"""Where a program of Python, and the worker that starts the server, read their own code from, whatever is asked."""


def by_names(setting: Setting, environment: Environment, given: Sequence[str]) -> tuple[list[str], int]:
    """Each name as a session, a folder, a cursor, a route: what the server opened outside of its own folder."""
    notes, folder, cwd = setting.folder / "notes", setting.folder / "served", setting.folder / "elsewhere"
    folder.mkdir()
    cwd.mkdir()
    asked, limits = 0, {"rate": 1e6, "burst": 1_000_000}
    code = {"PYTHONPATH": str(ROOT), **environment}
    with serving(store_in(folder), environment=watched(code, notes), limits=limits, cwd=cwd) as server:
        for name in given:
            spelled = name.replace("{root}", str(folder)).replace("{beside}", str(setting.folder))
            for method, field, more in FIELDS:
                server.post(_request(method, {**more, field: spelled}))
            for route in ROUTES:
                part = quote(spelled.encode("utf-8", "replace"), safe="/.~\\")
                server.request("GET", route.replace("{}", part), server.bearer("ann"))
            asked += len(FIELDS) + len(ROUTES)
        found = noted(notes)
    inside = {path.resolve() for path in (folder, setting.folder / "broken", *map(Path, READ))}
    opened = {_meant(cwd, note.told[0]) for note in found if note.event == "open"}
    return sorted(str(path) for path in opened if inside.isdisjoint((path, *path.parents))), asked


FILE_BY_NAME = Change(
    "gateway/page/routes.py",
    '    found = templates.assets().get(scope["path_params"]["name"])\n',
    '    found = templates.assets().get(scope["path_params"]["name"])\n'
    "    with __import__('contextlib').suppress(OSError, ValueError):\n"
    '        open(scope["path_params"]["name"]).close()\n',
)
"""A server that opens a file by the name that it is given."""


def over_gateway(setting: Setting, environment: Environment) -> Outcome:
    """The names over the gateway alone."""
    given = names(setting.dice("names"), NAMES_OF_CONTROL)
    outside, asked = by_names(setting, environment, given)
    return Outcome(
        met=not outside, figure=f"{len(outside)} opens outside by {asked:,} names over the gateway"
    )


def _meant(cwd: Path, name: str) -> Path:
    """The file that a process in this folder opens by this name."""
    return Path(os.path.realpath(cwd / name))


def _request(method: str, params: dict[str, Any]) -> bytes:
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return text.encode()


# Folders of other agents


def by_agents(folder: str) -> dict[str, Any]:
    """Links, pipes, devices and folders where every agent has its transcripts: what is read of them, and how long it takes."""
    place = made(Path(folder))
    slowest, read = 0.0, 0
    with openings(place.beside, place.beside / "in") as opened:
        for number, (name, written) in enumerate(WRITTEN.items()):
            home = place.root / f"agent-{name}"
            for at, make in enumerate(_ODD):
                path = written.place(home, at + 1)
                path.parent.mkdir(parents=True, exist_ok=True)
                make(path, place)
            written.save(home, 99, b"".join(written.lines(99, TEXTS)))
            began = time.monotonic()
            read += asyncio.run(_synced(place.root / f"kept-{number}", written.source(home)))
            slowest = max(slowest, time.monotonic() - began)
    return {"opened": opened, "slowest": slowest, "read": read, "agents": len(WRITTEN)}


_ODD: tuple[Callable[[Path, Place], None], ...] = (
    lambda path, place: path.symlink_to(place.beside / "file"),
    lambda path, place: path.symlink_to(place.beside),
    lambda path, _: path.symlink_to("/dev/zero"),
    lambda path, _: path.symlink_to(path),
    lambda path, _: os.mkfifo(path),
    lambda path, _: path.mkdir(),
)


async def _synced(folder: Path, source: Source) -> int:
    """How many sessions are there after a sync."""
    async with hitherto.open(f"sqlite:///{folder / 'store.db'}") as sessions:
        await asyncio.wait_for(House(folder, sessions, source).sync(), HANG_SECONDS)
        return await sessions.count(LOCAL)


# All of it


def inside(folder: str, given: list[str], tools: list[str], count: int) -> list[dict[str, Any]]:
    """What needs no server: the tools, the races, the folders of agents."""
    places = [Path(folder, part) for part in ("tools", "races", "agents")]
    for place in places:
        place.mkdir()
    by, during, among = map(str, places)
    return [by_tools(by, given, tools), races(during, count), by_agents(among)]


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Names by every way in, then races."""
    given = names(setting.dice("names"), setting.of(short=40, full=500))
    count = setting.of(short=60, full=1_000)
    tools = sorted(QUICK if setting.short else TOOLS)
    told = apart(inside, environment, folder=str(setting.folder), given=given, tools=tools, count=count)
    used, raced, agents = told
    served, asked = by_names(setting, environment, given[: setting.of(short=10, full=500)])
    outside = [*used["opened"], *used["told"], *raced["opened"], *agents["opened"], *served]
    slowest = max(raced["slowest"], agents["slowest"])
    hung = used["hung"] + (slowest >= HANG_SECONDS)
    if outside:
        setting.say("\n".join(outside[:10]))
    inputs = len(given) * len(tools) + asked + count
    figure = (
        f"{len(outside)} opens outside and {hung} hangs: {len(given)} names to {len(tools)} tools, {asked:,} names over the"
        f" gateway, odd files in the folders of {agents['agents']} agents, {count:,} uses during swaps"
    )
    met = not outside and not hung and agents["read"] == agents["agents"]
    return Outcome(met=met, figure=figure, counts={"inputs": inputs, "leaked": len(outside)})
