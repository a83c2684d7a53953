"""Measures pages of `hitherto serve`, in the environment that Hitherto runs in: `python -m bench.workloads.page_views FOLDER SIZES`.

`SIZES` is JSON: sessions, bytes, times, rounds, calls. There are two stores, one so many `times` smaller than the other,
each with a server. Prints, for each page, the CPU of the server and the bytes of the page with the one and the other.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import hitherto
from bench.workloads.messages import messages
from bench.workloads.server_load import Server, served
from hitherto.model import LOCAL, Draft, Text
from hitherto.service import Sessions

Json = dict[str, Any]
MESSAGES, SHORT, LONG = 10, 200, 2_000
SELDOM, PARTS = 40, 10
"""So many sessions have the rare word, and so many messages of the long one, however large the store is."""
RARE = "saffron"
COMMON = "badele"
CROWDED, CROWDING = "turmeric", 10
"""A word of the newest session alone, which says it once for so many sessions that there are."""
AT_ONCE = 64
THE_LONG_ONE = "the-long-one"


def drafts(first: int, count: int, characters: int, *, rare: bool = False) -> list[Draft]:
    """Messages, the last with the rare word if it is to have it."""
    texts = [each.text for each in messages(first, count, characters)]
    if rare:
        texts[-1] = f"{texts[-1]} {RARE}"
    return [
        Draft(role="assistant" if number % 2 else "user", parts=(Text(text=text),))
        for number, text in enumerate(texts)
    ]


async def filled(sessions: Sessions, count: int, size: int) -> tuple[str, str]:
    """Make the sessions and the long one of so many bytes; the pass of somebody who has signed in, and the message in
    the middle of the long session."""
    step = max(1, count // SELDOM)

    async def make(number: int) -> None:
        made = await sessions.create(LOCAL, title=f"Session {number:07}", cwd=f"/code/{number % 50}")
        said = drafts(number * MESSAGES, MESSAGES, SHORT, rare=number % step == 0)
        await sessions.append(LOCAL, made.id, said)

    await sessions.create(LOCAL, session_id=THE_LONG_ONE, title="The long one")
    part, ends = size // LONG // PARTS, list[str]()
    for number in range(PARTS):
        said = await sessions.append(LOCAL, THE_LONG_ONE, drafts(number * part, part, LONG, rare=True))
        ends.append(said.entries[-1])
    for first in range(0, count, AT_ONCE):
        await asyncio.gather(*(make(number) for number in range(first, min(first + AT_ONCE, count))))
    crowd = await sessions.create(LOCAL, title="A crowd")
    texts = (f"{CROWDED} {number}" for number in range(count // CROWDING))
    await sessions.append(LOCAL, crowd.id, [Draft(role="user", parts=(Text(text=text),)) for text in texts])
    await sessions.search(LOCAL, RARE)
    token, _ = await sessions.tokens.create(LOCAL.owner)
    held = await sessions.signin.sign_in(await sessions.signin.invite(token))
    assert held is not None
    return held, ends[PARTS // 2]


async def prepared(folder: Path, count: int, size: int) -> tuple[str, str]:
    """Fill the store of a folder; the pass, and the message in the middle of the long session."""
    async with hitherto.open(f"sqlite:///{folder / 'hitherto.db'}") as sessions:
        return await filled(sessions, count, size)


class Visitor:
    """Somebody who has signed in and opens pages, one after the other, over one connection."""

    def __init__(self, server: Server, held: str, middle: str) -> None:
        self._server = server
        self._line = http.client.HTTPConnection("127.0.0.1", server.port)
        self._headers = {
            "Cookie": f"hitherto-{server.port}={held}",
            "Sec-Fetch-Mode": "navigate",
            "Sec-Fetch-Dest": "document",
            "Sec-Fetch-Site": "none",
        }
        self.pages = {
            "list": "/",
            "search, a word of many messages": f"/?q={COMMON}+",
            "search, a word of 40 sessions": f"/?q={RARE}+",
            "search, a word that one session says again and again": f"/?q={CROWDED}+",
            "transcript, its end": f"/s/{THE_LONG_ONE}",
            "transcript, its middle": f"/s/{THE_LONG_ONE}?at={middle}",
            "found in the transcript": f"/find?session={THE_LONG_ONE}&q={RARE}+",
        }

    def open(self, name: str) -> int:
        """The bytes of a page."""
        try:
            reply = self._asked(name)
        except ConnectionError:
            # The other one has had a long turn, and the server closes what is idle.
            self._line.close()
            reply = self._asked(name)
        body = reply.read()
        assert reply.status == 200, (name, reply.status, body)
        return len(body)

    def _asked(self, name: str) -> http.client.HTTPResponse:
        self._line.request("GET", self.pages[name], headers=self._headers)
        return self._line.getresponse()

    def cost(self, name: str, calls: int) -> float:
        """Seconds of the server's CPU for a page."""
        before = self._server.cpu()
        for _ in range(calls):
            self.open(name)
        return (self._server.cpu() - before) / calls


def measured(few: Visitor, many: Visitor, rounds: int, calls: int) -> Iterator[tuple[str, Json]]:
    """Page by page, in turns."""
    for name in few.pages:
        sizes = [each.open(name) for each in (few, many)]
        costs = [[each.cost(name, calls) for each in (few, many)] for _ in range(rounds)]
        cpu = [statistics.median(column) for column in zip(*costs, strict=True)]
        yield name, {"few": cpu[0], "many": cpu[1], "few_bytes": sizes[0], "many_bytes": sizes[1]}


def main(folder: Path, sizes: Json) -> None:
    """Measure everything."""
    with ExitStack() as servers:
        visitors = []
        for name, times in (("few", sizes["times"]), ("many", 1)):
            home = folder / f"pages-{name}"
            home.mkdir()
            told = asyncio.run(prepared(home, sizes["sessions"] // times, sizes["bytes"] // times))
            visitors.append(Visitor(servers.enter_context(served(home)), *told))
        found = dict(measured(visitors[0], visitors[1], sizes["rounds"], sizes["calls"]))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
