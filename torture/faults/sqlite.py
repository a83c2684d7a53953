"""Every call that SQLite makes for an operation, and every statement, fails once; each time the store is held to what it said."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from torture.faults.failing_calls import KINDS, MEMORY, SYNCS, Faults, Kind
from torture.faults.judging import Judge, Right, is_failure, right_of, tried
from torture.faults.operations import APPEND, FIRST_ID, OPERATIONS, Ids, Operation, opened, prepare
from torture.trial.program import Environment, apart, store_in
from torture.trial.row import Outcome, Setting

LINES = 12
PROCESSES = 4
OPEN, CLOSE = "open", "close"
SHORT = ("append", "list")
SHORT_KINDS = KINDS[:1]
"""All that a control needs, too."""

Told = dict[str, Any]
Fail = Callable[[Kind, int], Awaitable[bool]]


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """All operations and kinds of faults; some in the short form, and of a broken program."""
    few = setting.short or bool(environment)
    names = list(SHORT) if few else [each.name for each in OPERATIONS] + [OPEN]
    # To close is tried with the others alone: what fails in the layer for syncs would be told, and SQLite ignores it.
    closing = [] if few else [CLOSE]
    tries = [
        *((name, SHORT_KINDS if few else KINDS) for name in (*names, *closing)),
        *((name, SYNCS) for name in names),
    ]

    def failed(given: tuple[str, Sequence[Kind]]) -> Told:
        name, kinds = given
        words = [kind.name for kind in kinds]
        told: Told = apart(
            fail_in_turn, environment, folder=str(setting.folder), operations=[name], kinds=words
        )
        tell(setting, name, told)
        return told

    with ThreadPoolExecutor(PROCESSES) as pool:
        told = list(pool.map(failed, tries))
    return outcome_of(setting, told, len(names) + len(closing))


def outcome_of(setting: Setting, told: Sequence[Told], operations: int) -> Outcome:
    """What the processes of a trial have told."""
    wrong: list[str] = [line for each in told for line in each["wrong"]]
    for line in wrong[:LINES]:
        setting.say(line)
    sums = sum((Counter(each["sums"]) for each in told), Counter[str]())
    figure = (
        f"{operations} operations, {sums['faults']:,} faults in turn ({sums['refused']:,} told with a code,"
        f" {sums['passed']:,} without effect on the answer): {len(wrong):,} times something was wrong"
    )
    return Outcome(
        met=not wrong and sums["faults"] > 0,
        figure=figure,
        counts={"faults": sums["faults"], "lost": len(wrong)},
    )


def tell(setting: Setting, name: str, told: Told) -> None:
    """Say what became of one operation, while the others are still to come."""
    if not setting.short:
        setting.say(f"{name}: {told['sums'].get('faults', 0):,} faults, {len(told['wrong'])} wrong")


def told_by(judge: Judge) -> Told:
    """What a process says of its trial."""
    return {"sums": judge.sums, "wrong": judge.wrong}


def fail_in_turn(folder: str, operations: Sequence[str], kinds: Sequence[str]) -> Told:
    """In a process of the program under trial: the faults, and what was wrong after each."""
    chosen = [kind for kind in (*KINDS, *SYNCS) if kind.name in kinds]
    faults = Faults()
    faults.install(syncs=any(kind in SYNCS for kind in chosen))
    with tempfile.TemporaryDirectory(dir=folder) as place:
        trial = _Trial(Path(place), faults)
        asyncio.run(trial.run(operations, chosen))
    return told_by(trial.judge)


class _Trial:
    def __init__(self, folder: Path, faults: Faults) -> None:
        self._folder, self._faults = folder, faults
        self._model = folder / "model"
        self.judge = Judge(certain=True)

    async def run(self, names: Sequence[str], kinds: Sequence[Kind]) -> None:
        """Let each call of each operation fail in turn, by each kind of fault."""
        self._model.mkdir()
        await prepare(store_in(self._model))
        for name in names:
            way = await self._way(name)
            for kind in kinds:
                fail = partial(way, kind)
                await self.judge.in_turn(f"{name}, {kind.name}", fail, lambda: self._faults.struck)

    async def _way(self, name: str) -> Fail:
        if name == OPEN:
            return self._opening
        operation = APPEND if name == CLOSE else next(each for each in OPERATIONS if each.name == name)
        right = await self._right(operation)
        return partial(self._closing, right) if name == CLOSE else partial(self._operating, operation, right)

    async def _right(self, operation: Operation) -> Right:
        folder = self._copied()
        try:
            return await right_of(store_in(folder), operation)
        finally:
            shutil.rmtree(folder)

    async def _operating(self, operation: Operation, right: Right, kind: Kind, at: int) -> bool:
        folder = self._copied()
        struck = await self.judge.operated(
            store_in(folder), operation, right, self._faults.failing(kind, at), partial(self._struck, kind)
        )
        await self.judge.examine(store_in(folder), right.after)
        shutil.rmtree(folder)
        return struck

    async def _opening(self, kind: Kind, at: int) -> bool:
        """A new store is opened; what failed is opened again, and used."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        store = opened(store_in(folder), Ids(1))
        with self._faults.failing(kind, at):
            answer = await tried(store.__aenter__())
        struck = self._judged(kind, answer)
        if not is_failure(answer):
            await store.__aexit__(None, None, None)
        await self.judge.expect_done(prepare(store_in(folder)), "the next try")
        await self.judge.examine(store_in(folder), None)
        shutil.rmtree(folder)
        return struck

    async def _closing(self, right: Right, kind: Kind, at: int) -> bool:
        """Something is done and acknowledged; then the calls of closing fail."""
        folder = self._copied()
        store = opened(store_in(folder), Ids(FIRST_ID))
        sessions = await store.__aenter__()
        await APPEND.do(sessions)
        with self._faults.failing(kind, at):
            answer = await tried(store.__aexit__(None, None, None))
        struck = self._judged(kind, answer)
        await self.judge.examine(store_in(folder), right.after)
        shutil.rmtree(folder)
        return struck

    def _judged(self, kind: Kind, answer: Any) -> bool:
        """Of what answers nothing: whether the fault has struck, and was told as it should be."""
        struck, failed = self._struck(kind, answer), is_failure(answer)
        if failed:
            self.judge.expect_typed(answer)
        self.judge.count(struck, refused=failed)
        return struck

    def _struck(self, kind: Kind, answer: Any) -> bool:
        """Of memory only the answer tells whether there was enough."""
        return is_failure(answer) if MEMORY in kind.calls else bool(self._faults.struck)

    def _copied(self) -> Path:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        for file in self._model.iterdir():
            shutil.copy(file, folder)
        return folder
