"""Secrets in what is shared: those that the rules of others describe, code that only looks like them, and our own tokens."""

from __future__ import annotations

import base64
import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from hitherto.secrets import find
from tests.gateway.servers import Server, serving
from tests.secrets.shapes import SHAPES
from tests.secrets.surroundings import Sample, surrounded
from torture.attacks.secret_rules import PACKAGE, TIMES, Tally, code, drawn_from, fetched, rules, tallied
from torture.trial.commands import command, served
from torture.trial.program import Environment, apart, store_in
from torture.trial.row import Outcome, Setting

RECALL, FALSE_ALARMS = 0.95, 1 / 10_000
FORMS = ("markdown", "html")
HARMLESS = "nothing-to-hide"
OWN_KIND = "Hitherto"
BATCH = 500
SHARED: dict[str, tuple[str, ...]] = {
    "markdown": (),
    "html": (),
    "json": ("--redact",),
    "jsonl": ("--redact",),
}
"""Every form of an export, and what the command needs to be told to make one for others of it."""


# How many are found


class Said(NamedTuple):
    """A secret in a text: which rule or shape it is of, and where it stands."""

    kind: str
    where: str
    text: str
    sample: Sample


def recall(setting: Setting, environment: Environment) -> tuple[Tally, Tally, int, list[Said]]:
    """Secrets said in sessions and exported to be shared: which of the rules of others and of the shapes are found in all
    surroundings, how many there were, and those that can still be read."""
    dice = setting.dice("secrets")
    of_rules = {} if setting.short else drawn_from(rules(fetched()), dice)
    of_shapes = {
        name: [draw(dice) for _ in range(setting.of(short=1, full=TIMES))] for name, draw in SHAPES.items()
    }
    said = [
        Said(kind, where, text, sample)
        for kind, several in (of_rules | of_shapes).items()
        for sample in several
        for where, text in surrounded(sample).items()
    ][:: setting.of(short=9, full=1)]
    tokens = [each for each in said if each.where == "bare" and each.kind.endswith(", bare")]
    said += [Said(f"{each.kind}, packed", "base64", *_packed(each.text)) for each in tokens]
    with serving(store_in(setting.folder), environment=environment) as server:
        seen = [each for at in range(0, len(said), BATCH) for each in _shown(server, said[at : at + BATCH])]
    lost = Counter((each.kind, each.where) for each in seen)
    return tallied(of_rules, lost), tallied(of_shapes, lost), len(said), seen


def _packed(text: str) -> tuple[str, Sample]:
    packed = base64.b64encode(f"token: {text}".encode()).decode()
    return f"config: {packed}", Sample(packed, packed[16:40])


def mark(at: int) -> str:
    """What stands around a secret: nothing that could be a part of one, in a line of its own."""
    return f"§ {HARMLESS} {at} §"


def _shown(server: Server, batch: list[Said]) -> list[Said]:
    """Those that can still be read in what is exported of a session in which they were said."""
    key = "agent:main:main"
    said = [f"{mark(at)}\n{each.text}\n{mark(at)}" for at, each in enumerate(batch)]
    messages = [{"role": "user", "content": text} for text in said]
    server.call("session.append", {"session_key": key, "messages": messages, "create": True})
    seen: dict[int, Said] = {}
    for form in FORMS:
        reply = server.post(_export(key, form)).body.decode()
        head, _, told = reply.partition("Exported")  # the title is of the first message
        if batch[0].sample.shown(head):
            seen[0] = batch[0]
        for at, each in enumerate(batch):
            found = re.search(rf"{mark(at)}(.*?){mark(at)}", told, re.DOTALL)
            if found is None:  # what is not exported shows no secret either
                raise RuntimeError(f"not exported as {form}: {reply[:500]}")
            if each.sample.shown(found[1]):
                seen[at] = each
    server.call("session.delete", {"session_key": key})
    return list(seen.values())


def _export(key: str, form: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":1,"method":"session.export","params":{{"session_key":"{key}","format":"{form}"}}}}'.encode()


# How many are none


def false_alarms(files: list[str]) -> list[int]:
    """How often something in code was taken for a secret, and in how many lines."""
    alarms = lines = 0
    for file in files:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
        alarms += len(find(text))
        lines += text.count("\n")
    return [alarms, lines]


def _code(setting: Setting) -> list[str]:
    """Files of the standard library and of packages: code that somebody wrote, tests and all."""
    return [str(path) for path in code()[:: setting.of(short=100, full=1)]]


# Our own


def own_tokens(setting: Setting, environment: Environment) -> tuple[int, list[str]]:
    """Use tokens rightly and wrongly, and look for them wherever the program writes: how often it was looked, and where."""
    home = _home(setting)
    home.mkdir()
    looked, found = 0, list[str]()
    made = command(home, environment, "token", "create", "--owner", "bob", "--json")
    other = re.search(r"hth_[\w-]{20,}", made.stdout.decode())
    assert other is not None
    with served(home, environment) as server:
        secrets = [server.tokens["ann"].secret, other[0]]
        for where, told in itertools.chain(
            _exported(setting, environment, server, secrets), _told(server, secrets)
        ):
            looked += 1
            found += [where for secret in secrets if secret in told]
        for name in ("cmdline", "environ"):
            text = Path(f"/proc/{server.process.pid}/{name}").read_bytes().decode(errors="replace")
            looked += 1
            found += [name for secret in secrets if secret in text]
    for path in sorted(home.rglob("*")):
        if path.is_file() and not path.name.startswith("token"):
            looked += 1
            found += [str(path.name) for secret in secrets if secret.encode() in path.read_bytes()]
    looked += 1
    found += ["the log" for secret in secrets if secret.encode() in server.logged]
    return looked, found


def _home(setting: Setting) -> Path:
    return setting.folder / "own"


def _exported(
    setting: Setting, environment: Environment, server: Server, secrets: list[str]
) -> Iterator[tuple[str, str]]:
    """A session in which a token was said, in every form that is for others, over the gateway and by command; it is
    deleted then. Raises `RuntimeError` for what is no export of it."""
    key, by_command = "agent:main:main", sorted(SHARED)[: setting.of(short=1, full=len(SHARED))]
    said = [{"role": "user", "content": f"{HARMLESS}, my token is {secret}"} for secret in secrets]
    made = server.call("session.append", {"session_key": key, "messages": said, "create": True})["session_id"]
    for form, words in SHARED.items():
        told = {f"session.export, {form}": server.post(_export(key, form)).body.decode()}
        if form in by_command:
            ran = command(_home(setting), environment, "export", made, "--format", form, *words)
            told[f"hitherto export, {form}"] = ran.stdout.decode() or ran.stderr.decode()
        for where, text in told.items():
            if HARMLESS not in text:
                raise RuntimeError(f"not exported, {where}: {text[:500]}")
            yield where, text
    server.call("session.delete", {"session_key": key})


def _told(server: Server, secrets: list[str]) -> Iterator[tuple[str, str]]:
    """Whatever the server answers, errors most of all, to requests that carry a token where one belongs and where none does."""
    list_them = b'{"jsonrpc":"2.0","id":1,"method":"session.list"}'
    for token in secrets:
        bearer = {"Authorization": f"Bearer {token}"}
        for path in ("/", "/health", "/metrics", "/nowhere", "/usage", "/s/x", "/live?now=1", "/mcp"):
            for headers in (bearer, {"Cookie": f"hitherto-{server.port}={token}"}, {"Authorization": token}):
                for query in ("", f"{'&' if '?' in path else '?'}token={quote(token)}"):
                    reply = server.request("GET", path + query, headers)
                    yield (
                        f"{path}{query and '?token'}",
                        reply.body.decode(errors="replace") + str(reply.headers),
                    )
        for body in (list_them, b"{", b"[]", b'{"jsonrpc":"2.0","id":1,"method":"no.such"}', b"\xff"):
            reply = server.request("POST", "/rpc", {**bearer, "Content-Type": "application/json"}, body)
            yield "/rpc", reply.body.decode(errors="replace") + str(reply.headers)
        yield "/ws", str(server.upgrade(f"/ws?token={quote(token)}", [("Authorization", f"Basic {token}")]))


# All of it


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """All three."""
    parts = [part(setting, environment) for part in (others_secrets, own_secrets)]
    return Outcome(
        met=all(part.met for part in parts),
        figure="; ".join(part.figure for part in parts),
        counts={name: sum(part.counts[name] for part in parts) for name in ("inputs", "leaked")},
    )


def others_secrets(setting: Setting, environment: Environment) -> Outcome:
    """How many secrets are replaced, and how much that is none; of our own kind, not one may be left."""
    of_rules, of_shapes, samples, seen = recall(setting, environment)
    alarms, lines = apart(false_alarms, environment, files=_code(setting))
    for each in sorted({f"{each.kind}: {each.where}" for each in seen}):
        setting.say(each)
    own = [each for each in seen if each.kind.startswith(OWN_KIND)]
    share = 1 - len(seen) / samples
    found = f"{of_rules.found} of {of_rules.total} rules of {PACKAGE} and " if of_rules.total else ""
    figure = (
        f"{found}{of_shapes.found} of {of_shapes.total} shapes found in all surroundings, {share:.1%} of {samples:,} secrets,"
        f" {len(own)} of our own kind left; {alarms:,} false alarms in {lines:,} lines of code ({alarms / lines * 10_000:.2f} in 10,000)"
    )
    met = (
        of_rules.found >= RECALL * of_rules.total
        and of_shapes.found >= RECALL * of_shapes.total
        and share >= RECALL
        and not own
        and alarms <= FALSE_ALARMS * lines
    )
    return Outcome(met=met, figure=figure, counts={"inputs": samples, "leaked": len(own)})


def own_secrets(setting: Setting, environment: Environment) -> Outcome:
    """Where tokens of the program are found."""
    looked, found = own_tokens(setting, environment)
    for trouble in found[:10]:
        setting.say(trouble)
    figure = f"own tokens found {len(found)} times in {looked:,} places"
    return Outcome(met=not found, figure=figure, counts={"inputs": looked, "leaked": len(found)})
