"""Three owners of one server do whatever they like, and tamper with cursors: nobody ever sees anything of another."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from hitherto.gateway.dispatch.method import NAMED
from hitherto.gateway.methods import METHODS
from hitherto.values.scopes import SCOPES
from tests.gateway.methods import test_access as access
from tests.gateway.servers import Json, Server, serving
from torture.clients.owner import Owner, connected
from torture.trial.program import Environment, apart, store_in
from torture.trial.row import Outcome, Setting

OWNERS = ("ann", "bob", "an")
WORDS = {"ann": "zebrafish", "bob": "yellowhammer", "an": "xylophone"}
"""A word of which nobody else has ever heard."""
STEPS_AT_ONCE = 100
GROUP = "agent:main:x:group:"
ID = re.compile(r"(?!0{8})[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
"""An id that was drawn. One that begins with zeros is made of what was imported: two who import the same have the same."""
MISSING = "00000000-0000-7000-8000-000000000000"
TEXTS = ("content", "query", "text", "title", "label", "topic", "name")
ON_SOCKET = ("session.subscribe", "session.unsubscribe")
"""What is refused anywhere else."""
SOCKET_EVERY = 4
"""Of all other methods, one of so many requests goes over the socket too."""
ROUNDS = 2_000


class Question(NamedTuple):
    """Something that gives a cursor, and how it is asked for one. `named`: of one session."""

    method: str
    params: Mapping[str, Any]
    named: bool = False

    def of(self, owner: Owner, **more: str) -> str:
        """The answer to this owner."""
        about = {"session_key": _first(owner)} if self.named else {}
        ask = owner.say if self.method in ON_SOCKET else owner.ask
        return ask(self.method, {**self.params, **about, **more})


PAGED = (
    Question("session.list", {"limit": 1}),
    Question("session.search", {"query": "mine", "limit": 1}),
    Question("sessions.list", {"limit": 1}),
    Question("store.find", {"limit": 1}),
    Question("store.search", {"text": "mine", "limit": 1}),
    Question("session.subscribe", {}),
    Question("session.subscribe", {}, named=True),
)


@dataclass
class Watch:
    """What was done, and what should not have been told."""

    owners: list[Owner]
    steps: int = 0
    compared: int = 0
    heard: int = 0
    leaks: list[str] = field(default_factory=list)

    def step(self, actor: int, name: str, whose: int, pick: int) -> None:
        """One owner asks one method, about something of their own, of another's, or of nobody's."""
        owner, other = self.owners[actor], self.owners[whose % len(self.owners)]
        params = _spoken(access.request(name), WORDS[owner.name])
        about = _picked(other.recent, pick)
        if METHODS[name].owns in NAMED and about is not None:
            params = {**params, "session_key": about}
        for field_name in ("message_id", "checkpoint_id", "entry_id", "checkpoint", "to", "prefix"):
            if field_name in params:
                params[field_name] = _picked(other.recent, pick // 7) or MISSING
        if name == "session.unsubscribe":  # of their own, all but the one that is to tell of everything
            known = other.known if other is not owner else owner.recent
            params["subscription_id"] = _picked(known, pick // 7) or MISSING
        if name in ("session.append", "session.create") and pick % 3:
            params = {**params, "session_key": f"agent:main:x:dm:{owner.name}{pick % 9}"} | (
                {"create": True} if name == "session.append" else {}
            )
        ask = owner.say if name in ON_SOCKET or pick % SOCKET_EVERY == 0 else owner.ask
        asked, told = json.dumps(params), ask(name, params)
        self.steps += 1
        self._look(owner, name, asked, told)
        if other is not owner and about is not None and about in asked:
            self._compare(ask, name, params, about, told)
        for each in self.owners:
            self.hear(each)

    def hear(self, owner: Owner) -> int:
        """Look at what an owner was told without asking, and say how much that was."""
        events = owner.events()
        for told in events:
            self._look(owner, "an event", "", told)
        self.heard += len(events)
        return len(events)

    def _look(self, owner: Owner, name: str, asked: str, told: str) -> None:
        found = {each for each in ID.findall(told) if each not in asked}
        for other in self.owners:
            if other is owner:
                continue
            foreign = found & other.ids
            if foreign or WORDS[other.name] in told:
                self.leaks.append(f"{name} told {owner.name} of {other.name}: {told[:300]}")
        fresh = found - owner.ids
        owner.ids |= fresh
        owner.recent.extend(sorted(fresh))

    def _compare(
        self, ask: Callable[[str, Json], str], name: str, params: Json, about: str, told: str
    ) -> None:
        """What is somebody else's is answered in the same bytes as what is nobody's."""
        missing = ask(name, json.loads(json.dumps(params).replace(about, MISSING)))
        if "error" not in json.loads(missing):
            return  # it makes what is missing, which has an id of its own
        self.compared += 1
        if told.replace(about, MISSING) != missing:
            self.leaks.append(f"{name} of {about}: foreign is {told[:300]}, missing is {missing[:300]}")


def _spoken(params: Any, word: str) -> Any:
    """The same parameters, in the words of this owner."""
    if isinstance(params, dict):
        return {
            name: f"mine {word}" if name in TEXTS and isinstance(value, str) else _spoken(value, word)
            for name, value in params.items()
        }
    return [_spoken(item, word) for item in params] if isinstance(params, list) else params


def _picked(known: Sequence[str], pick: int) -> str | None:
    return known[pick % len(known)] if known else None


def machine(watch: Watch) -> type[RuleBasedStateMachine]:
    """Steps of all owners, in any order, through every method."""

    class Machine(RuleBasedStateMachine):
        @rule(
            actor=st.integers(0, len(OWNERS) - 1),
            name=st.sampled_from(sorted(METHODS)),
            whose=st.integers(0, len(OWNERS) - 1),
            pick=st.integers(0, 10_000),
        )
        def ask(self, actor: int, name: str, whose: int, pick: int) -> None:
            watch.step(actor, name, whose, pick)

    return Machine


def walk(watch: Watch, steps: int, number: int) -> None:
    """Let Hypothesis choose so many steps."""
    while watch.steps < steps:
        at_once = min(STEPS_AT_ONCE, steps)
        chosen = settings(
            max_examples=max(1, (steps - watch.steps) // at_once),
            stateful_step_count=at_once,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        number += 1
        run_state_machine_as_test(seed(number)(machine(watch)), settings=chosen)


# Cursors


def _flipped(cursor: str, dice: random.Random, _: Sequence[str]) -> str:
    head, _, mac = cursor.partition(".")
    part = dice.choice([head, mac])
    data = bytearray(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    changed = base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    return f"{changed}.{mac}" if part is head else f"{head}.{changed}"


def _spelled(cursor: str, dice: random.Random, _: Sequence[str]) -> str:
    at = dice.randrange(len(cursor))
    return cursor[:at] + dice.choice("AZaz09-_.=+/ \0é") + cursor[at + 1 :]


TAMPERED: dict[str, Callable[[str, random.Random, Sequence[str]], str]] = {
    "a bit flipped": _flipped,
    "a character changed": _spelled,
    "cut short": lambda cursor, dice, _: cursor[: dice.randrange(1, len(cursor))],
    "longer": lambda cursor, dice, _: cursor + dice.choice(["A", "==", ".", ".AAAA", " ", "\n"]),
    "halves swapped": lambda cursor, _, __: ".".join(reversed(cursor.split("."))),
    "half of another": lambda cursor, dice, others: (
        f"{cursor.partition('.')[0]}.{dice.choice(others).partition('.')[2]}"
    ),
    "of another": lambda _, dice, others: dice.choice(others),
    "made up": lambda _, dice, __: f"{dice.randbytes(20).hex()}.{dice.randbytes(16).hex()}",
}


def tamper(owners: Sequence[Owner], count: int, dice: random.Random) -> list[str]:
    """So many cursors that nobody was given are tried; those that were taken."""
    given = {
        (owner.name, at): json.loads(question.of(owner))
        for owner in owners
        for at, question in enumerate(PAGED)
    }
    cursors = {place: _cursor(told["result"]) for place, told in given.items() if "result" in told}
    taken = [f"{place} of their own: {told}"[:300] for place, told in given.items() if "error" in told]
    for number in range(count):
        owner = owners[number % len(owners)]
        at = dice.choice([at for name, at in cursors if name == owner.name])
        own, kind = cursors[owner.name, at], dice.choice(sorted(TAMPERED))
        others = [each for place, each in cursors.items() if place != (owner.name, at)]
        changed = TAMPERED[kind](own, dice, others)
        told = json.loads(PAGED[at].of(owner, cursor=changed))
        refused = told.get("error", {}).get("data", {}).get("code") in ("invalid_cursor", "invalid_input")
        if changed != own and not refused:
            taken.append(f"{PAGED[at].method}, {kind}: {str(told)[:300]}")
        if made := told.get("result", {}).get("subscription_id"):  # a connection may have so many
            owner.say("session.unsubscribe", {"subscription_id": made})
    return taken


def _cursor(told: Json) -> str:
    found: str = (told.get("value") or told)["cursor"]
    return found


# All of it


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """The steps, the cursors, and whether an owner is told the same when nobody else is there."""
    tokens = {name: (name, SCOPES) for name in OWNERS}
    limits = {"rate": 1e6, "burst": 1_000_000}
    steps, count = setting.of(short=300, full=50_000), setting.of(short=100, full=10_000)
    with serving(
        store_in(setting.folder),
        tokens=tokens,
        limits=limits,
        environment=environment,
        noisy=bool(environment),
    ) as server:
        with _all_connected(server) as owners:
            watch = Watch(owners)
            for owner in owners:
                owner.subscribe()
                _settle(owner)
            walk(watch, steps, setting.seed)
            for owner in owners:
                watch.hear(owner)
                _settle(owner)
                _await_news(watch, owner)
        with _all_connected(server) as owners:
            taken = tamper(owners, count, setting.dice("cursors"))
    alone = setting.of(short=0, full=3_000)
    apart_too = apart(unlike, environment, seed=setting.seed, steps=alone) if alone else []
    leaks = [*watch.leaks, *taken, *apart_too]
    if leaks:
        setting.say("\n".join(leaks[:10]))
    figure = (
        f"{len(watch.leaks)} leaks in {watch.steps:,} steps of {len(OWNERS)} owners over all {len(METHODS)} methods and in"
        f" {watch.heard:,} events told to their subscriptions ({watch.compared:,} foreign answers compared with missing byte for"
        f" byte), {len(taken)} of {count:,} tampered cursors taken, {len(apart_too)} of {alone * len(OWNERS):,} answers moved"
        " by others"
    )
    sums = {"inputs": watch.steps + count, "leaked": len(leaks)}
    return Outcome(met=not leaks, figure=figure, counts=sums)


@contextmanager
def _all_connected(server: Server) -> Iterator[list[Owner]]:
    with ExitStack() as stack:
        yield [stack.enter_context(connected(server, name)) for name in OWNERS]


def _settle(owner: Owner) -> None:
    """Two sessions with a word of their owner's, so that every list has a second page."""
    for number in range(2):
        said = [{"role": "user", "content": f"mine {WORDS[owner.name]}"}]
        key = f"{GROUP}{owner.name}{number}"
        told = owner.ask("session.append", {"session_key": key, "messages": said, "create": True})
        fresh = set(ID.findall(told)) - owner.ids
        owner.ids |= fresh
        owner.recent.extend(sorted(fresh))


def _first(owner: Owner) -> str:
    return f"{GROUP}{owner.name}0"


def _await_news(watch: Watch, owner: Owner) -> None:
    """An owner is still told of their own: nobody has ended that, and what is looked at is not nothing."""
    for _ in range(ROUNDS):
        if watch.hear(owner):
            return
        owner.say("session.list", {"limit": 1})
    watch.leaks.append(f"{owner.name} is told nothing any more")


def unlike(seed: int, steps: int) -> list[str]:
    """Answers that an owner is given only because others are there."""
    plan = random.Random(seed).choices(access.OWNERS, k=steps)
    together = asyncio.run(access.played(access.OWNERS, plan, seed))
    found: list[str] = []
    for owner in access.OWNERS:
        alone = asyncio.run(access.played((owner,), plan, seed))
        pairs = zip(access.comparable(alone[owner]), access.comparable(together[owner]), strict=True)
        found += [str(both)[:300] for both in pairs if both[0] != both[1]]
    return found
