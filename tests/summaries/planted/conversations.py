"""Long conversations made of templates, with facts planted in them: the same seed, the same conversation."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import NamedTuple

from hitherto.model import Draft, Role, Text, ToolCall, ToolResult


class Plant(NamedTuple):
    """A sentence to be planted, by whom (`tool` and `code`: not as prose), and how to ask for its `value` later."""

    kind: str
    speaker: str
    text: str
    query: str
    value: str


class Templates(NamedTuple):
    """What a conversation is made of; `{slots}` are filled at random."""

    plants: tuple[Plant, ...]
    decoys: tuple[Plant, ...]
    user: tuple[str, ...]
    assistant: tuple[str, ...]
    nouns: tuple[str, ...]


class Planted(NamedTuple):
    """A conversation, and what was planted in it with all slots filled."""

    drafts: list[Draft]
    plants: list[Plant]
    decoys: list[Plant]


_FIRST = (
    "Amara", "Bjorn", "Chidi", "Dalia", "Emre", "Farah", "Goran", "Hana", "Ivo", "Jorge", "Keiko", "Lars",
    "Mireille", "Nadia", "Olu", "Priya", "Quentin", "Ravi", "Sofia", "Tomasz", "Ulla", "Viktor", "Wen", "Yusuf",
)  # fmt: skip
_LAST = (
    "Adeyemi", "Bianchi", "Castellano", "Dvorak", "Eriksen", "Fujimoto", "Grzelak", "Haddad", "Ivanova",
    "Jankowski", "Kowalczyk", "Lindqvist", "Moreau", "Nakagawa", "Okonkwo", "Petrov", "Rahman", "Santos",
)  # fmt: skip
_WORDS = (
    "amber", "basalt", "cobalt", "dune", "ember", "falcon", "garnet", "harbor", "indigo", "juniper", "kestrel",
    "lagoon", "maple", "nimbus", "onyx", "prairie", "quartz", "raven", "saffron", "tundra", "umber", "velvet",
    "willow", "yarrow", "zephyr",
)  # fmt: skip
_TOOLS = (
    "RabbitMQ", "DuckDB", "Valkey", "NATS", "ClickHouse", "Terraform", "Nomad", "Caddy", "Meilisearch", "Grafana",
    "Kafka", "SQLite", "Traefik", "Svelte", "Bazel", "OpenSearch", "Temporal", "Podman",
)  # fmt: skip
_STYLES = (
    "tabs over spaces", "trailing commas", "early returns", "plain functions", "single quotes", "type hints",
    "dataclasses", "golden files", "inline comments", "snake_case names", "bullet points", "nested ternaries",
    "global state", "wildcard imports", "table-driven tests", "the imperative mood",
)  # fmt: skip
_LANGUAGES = ("Danish", "Portuguese", "German", "Finnish", "French", "Polish", "Spanish", "Catalan")
_FOODS = ("peanuts", "shellfish", "sesame", "walnuts", "celery", "mustard", "lupin", "soy")
_ZONES = ("UTC", "CET", "JST", "PST")
_MONTHS = ("January", "March", "April", "June", "July", "September", "October", "December")

Slot = Callable[[random.Random], str]
SLOTS: dict[str, Slot] = {
    "name": lambda dice: f"{dice.choice(_FIRST)} {dice.choice(_LAST)}",
    "codename": lambda dice: dice.choice(_WORDS).title() + dice.choice(_WORDS),
    "company": lambda dice: (
        f"{dice.choice(_WORDS).title()} {dice.choice(('Labs', 'Logistics', 'Systems', 'Bank'))}"
    ),
    "path": lambda dice: (
        dice.choice(("/etc", "/srv", "/var/lib", "src", "~/work", "infra/prod"))
        + f"/{dice.choice(_WORDS)}/{dice.choice(_WORDS)}{dice.randint(1, 99)}"
        + dice.choice((".yaml", ".py", ".toml", ".sql", ".json", ""))
    ),
    "url": lambda dice: (
        f"https://{dice.choice(_WORDS)}{dice.randint(1, 99)}.example.net/{dice.choice(_WORDS)}"
    ),
    "ident": lambda dice: f"{dice.choice(_WORDS)}-{dice.choice(_WORDS)}-{dice.randint(1000, 9999)}",
    "ticket": lambda dice: f"{dice.choice(('OPS', 'CORE', 'WEB', 'DATA'))}-{dice.randint(100, 9999)}",
    "sha": lambda dice: f"{dice.getrandbits(40):010x}",
    "branch": lambda dice: (
        f"{dice.choice(('feature', 'fix', 'chore'))}/{dice.choice(_WORDS)}-{dice.choice(_WORDS)}"
    ),
    "flag": lambda dice: f"{dice.choice(_WORDS)}_{dice.choice(_WORDS)}_v{dice.randint(2, 9)}",
    "port": lambda dice: str(dice.randint(1025, 65000)),
    "money": lambda dice: f"{dice.randint(11, 98)},{dice.randint(100, 999)}",
    "number": lambda dice: str(dice.randint(101, 9999)),
    "small": lambda dice: str(dice.randint(2, 9)),
    "percent": lambda dice: f"99.{dice.randint(100, 999)}%",
    "date": lambda dice: f"{dice.choice(_MONTHS)} {dice.randint(1, 28)}",
    "time": lambda dice: f"{dice.randint(6, 22):02d}:{dice.randint(10, 59)}",
    "version": lambda dice: f"{dice.randint(9, 17)}.{dice.randint(1, 40)}",
    "tool": lambda dice: dice.choice(_TOOLS),
    "style": lambda dice: dice.choice(_STYLES),
    "language": lambda dice: dice.choice(_LANGUAGES),
    "food": lambda dice: dice.choice(_FOODS),
    "zone": lambda dice: dice.choice(_ZONES),
    "ident_word": lambda dice: dice.choice(_WORDS),
}
_SLOT = re.compile(r"\{(\w+)\}")


def conversation(templates: Templates, seed: int, exchanges: int = 150) -> Planted:
    """A conversation with every plant and every decoy in it once, at random places among much that says little."""
    dice = random.Random(seed)
    plants = [_filled(plant, dice) for plant in templates.plants]
    decoys = [_filled(plant, dice) for plant in templates.decoys]
    waiting: dict[int, list[Plant]] = {}
    for plant in (*plants, *decoys):
        waiting.setdefault(dice.randrange(exchanges), []).append(plant)
    drafts: list[Draft] = []
    for number in range(exchanges):
        drafts += _exchange(templates, dice, waiting.get(number, []), number)
    return Planted(drafts, plants, decoys)


def _filled(plant: Plant, dice: random.Random) -> Plant:
    fixed: dict[str, str] = {}
    texts = [_fill(text, dice, fixed) for text in (plant.text, plant.query, plant.value)]
    return plant._replace(text=texts[0], query=texts[1], value=texts[2])


def _fill(text: str, dice: random.Random, fixed: dict[str, str]) -> str:
    def slot(match: re.Match[str]) -> str:
        name = match[1]
        if name not in fixed:
            fixed[name] = SLOTS[name](dice)
        return fixed[name]

    return _SLOT.sub(slot, text)


def _exchange(templates: Templates, dice: random.Random, plants: list[Plant], number: int) -> list[Draft]:
    """A prompt, now and then a tool with its result, and an answer."""
    spoken = {speaker: [p.text for p in plants if p.speaker == speaker] for speaker in ("user", "assistant")}
    code = [plant.text for plant in plants if plant.speaker == "code"]
    outputs = [plant.text for plant in plants if plant.speaker == "tool"]
    drafts = [_said("user", _among(spoken["user"], templates.user, templates.nouns, dice))]
    if outputs or dice.random() < 0.4:
        drafts += _tool(dice, number, outputs)
    answer = _among(spoken["assistant"], templates.assistant, templates.nouns, dice)
    if code:
        answer += "\n\n```python\n" + "\n".join(code) + "\n```"
    return [*drafts, _said("assistant", answer)]


def _among(planted: list[str], fillers: tuple[str, ...], nouns: tuple[str, ...], dice: random.Random) -> str:
    """The planted sentences with others before and behind them, as one message."""
    pieces = [_filler(fillers, nouns, dice) for _ in range(dice.randint(1, 3))]
    for sentence in planted:
        at = dice.randint(0, len(pieces))
        pieces.insert(at, sentence)
    return dice.choice((" ", "\n", "\n\n")).join(pieces)


def _filler(fillers: tuple[str, ...], nouns: tuple[str, ...], dice: random.Random) -> str:
    text = dice.choice(fillers)
    while "{noun}" in text:
        text = text.replace("{noun}", dice.choice(nouns), 1)
    return _fill(text, dice, {})


def _said(role: Role, text: str) -> Draft:
    return Draft(role=role, parts=(Text(text=text),))


def _tool(dice: random.Random, number: int, outputs: list[str]) -> list[Draft]:
    noise = [
        f"{dice.choice(_WORDS)}/{dice.choice(_WORDS)}.py:{dice.randint(1, 999)}: ok"
        for _ in range(dice.randint(3, 20))
    ]
    lines = [*noise, *outputs]
    dice.shuffle(lines)
    call = ToolCall(id=f"call-{number}", name="bash", input={"command": f"make {dice.choice(_WORDS)}"})
    result = ToolResult(id=call.id, content=(Text(text="\n".join(lines)),), is_error=dice.random() < 0.1)
    return [Draft(role="assistant", parts=(call,)), Draft(role="tool", parts=(result,))]
