"""Secrets in what is shared: forty kinds of them, code that only looks like them, and the program's own tokens."""

from __future__ import annotations

import base64
import itertools
import random
import re
import string
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from hitherto.secrets import redact
from tests.gateway.servers import Server, serving
from torture.trial.commands import command, served
from torture.trial.program import Environment, apart, store_in
from torture.trial.row import Outcome, Setting

RECALL, FALSE_HITS = 0.95, 0.01
KINDS: dict[str, str] = {
    "anthropic": "sk-ant-api03-{93w}AA", "openai": "sk-proj-{60w}9T3Blbk{60a}", "openai, older": "sk-{48a}",
    "openrouter": "sk-or-v1-{64h}", "github": "ghp_{36a}", "github, fine-grained": "github_pat_{22a}_{59a}",
    "gitlab": "glpat-{20a}", "aws": "AKIA{16U}", "aws, temporary": "ASIA{16U}", "google": "AIza{35w}",
    "google, token": "ya29.{120w}", "google, client": "GOCSPX-{28w}", "slack": "xoxb-{12d}-{24a}",
    "slack, webhook": "https://hooks.slack.com/services/T{8a}/B{8a}/{24a}", "discord, webhook": "https://discord.com/api/webhooks/{18d}/{68w}",
    "stripe": "sk_live_{24a}", "stripe, webhook": "whsec_{32a}", "telegram": "{9d}:AA{33w}", "twilio": "SK{32h}",
    "sendgrid": "SG.{22w}.{43w}", "mailgun": "key-{32h}", "npm": "npm_{36a}", "pypi": "pypi-AgEIcHlwaS5vcmc{70w}",
    "hugging face": "hf_{34a}", "groq": "gsk_{52a}", "xai": "xai-{80a}", "replicate": "r8_{37a}",
    "digitalocean": "dop_v1_{64h}", "databricks": "dapi{32h}", "shopify": "shpat_{32h}", "atlassian": "ATATT3{60w}",
    "vault": "hvs.{90w}", "terraform": "{14a}.atlasv1.{60w}", "docker": "dckr_pat_{27w}", "supabase": "sbp_{40h}",
    "linear": "lin_api_{40a}", "new relic": "NRAK-{27U}", "grafana": "glsa_{32a}", "json web token": "eyJ{33w}.eyJ{60w}.{43w}",
    "hitherto": "hth_{43w}", "private key": "-----BEGIN RSA PRIVATE KEY-----\n{64a}\n{64a}\n-----END RSA PRIVATE KEY-----",
    "age": "AGE-SECRET-KEY-1{58U}", "bearer": "Authorization: Bearer {40a}7", "password in a url": "postgres://admin:{20a}@db.example.com/x",
    "variable": "export API_KEY='{39a}5'", "member": '{{"client_secret": "{31a}8"}}', "cookie": "Cookie: session_id={32a}; theme=dark",
    "signed url": "https://x.example/blob?sv=2020&sig={42a}3%3D",
}  # fmt: skip
"""What a secret looks like: `{36a}` is so many letters and digits; h hexadecimal, d digits, w as in URLs, U capitals."""
ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "h": "0123456789abcdef",
    "d": "123456789",
    "w": string.ascii_letters + string.digits + "_-",
    "U": string.ascii_uppercase + "234567",
}
DRAWN = re.compile(r"\{(\d+)([ahdwU])\}")
PLACES = ("{}", "use {} now", "the value\\n{}\\tand more", "```sh\nrun --with {}\n```", "({}),")
FORMS = ("markdown", "html")
HARMLESS = "nothing to hide here"
OWN_KIND = "hitherto"
SHARED: dict[str, tuple[str, ...]] = {
    "markdown": (),
    "html": (),
    "json": ("--redact",),
    "jsonl": ("--redact",),
}
"""Every form of an export, and what the command needs to be told to make one for others of it."""


def sample(kind: str, dice: random.Random) -> tuple[str, list[str]]:
    """A text with a secret of this kind, and the parts of it that must never be seen."""
    hidden: list[str] = []

    def drawn(found: re.Match[str]) -> str:
        text = "".join(dice.choices(ALPHABETS[found[2]], k=int(found[1])))
        hidden.append(text)
        return text

    text = DRAWN.sub(drawn, KINDS[kind]).replace("{{", "{").replace("}}", "}")
    return text, [part for part in hidden if len(part) >= 16]


# How many are found


def recall(setting: Setting, environment: Environment) -> tuple[int, int, list[str]]:
    """Secrets said in a session and exported to be shared: how many were not seen, of how many, and those that were."""
    dice, times = setting.dice("secrets"), setting.of(short=1, full=20)
    samples = [(kind, *sample(kind, dice)) for kind in KINDS for _ in range(times)]
    texts = [dice.choice(PLACES).replace("{}", text) for _, text, _ in samples]
    packed = [(f"{kind}, packed", text, hidden) for kind, text, hidden in samples[:: times * 4]]
    texts += [f"config: {base64.b64encode(f'token: {text}'.encode()).decode()}" for _, text, _ in packed]
    samples += [(kind, text, [_inside(text)]) for kind, text, _ in packed]
    with serving(store_in(setting.folder), environment=environment) as server:
        said = [{"role": "user", "content": text} for text in (HARMLESS, *texts)]
        key = "agent:main:main"
        server.call("session.append", {"session_key": key, "messages": said, "create": True})
        shown = ""
        for form in FORMS:
            reply = server.post(_export(key, form)).body.decode()
            if HARMLESS not in reply:  # what is not exported shows no secret either
                raise RuntimeError(f"not exported as {form}: {reply[:500]}")
            shown += reply
    seen = [kind for kind, _, hidden in samples if any(part in shown for part in hidden)]
    return len(samples) - len(seen), len(samples), seen


def _inside(text: str) -> str:
    """The middle of a text in base64, wherever it begins."""
    return base64.b64encode(f"token: {text}".encode()).decode()[16:40]


def _export(key: str, form: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":1,"method":"session.export","params":{{"session_key":"{key}","format":"{form}"}}}}'.encode()


# How many are none


def false_hits(files: list[str]) -> list[int]:
    """Lines of code in which something was taken for a secret, and all lines."""
    hits = lines = 0
    for file in files:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
        seen: Counter[str] = Counter()
        redact(text, seen)
        hits += seen.total()
        lines += text.count("\n")
    return [hits, lines]


def _code(setting: Setting) -> list[str]:
    """Files of the standard library and of packages: code that somebody wrote, tests and all."""
    found = sorted(
        str(path)
        for kind in ("stdlib", "purelib")
        for path in Path(sysconfig.get_paths()[kind]).glob("*/*.py")
    )
    return setting.dice("code").sample(found, min(len(found), setting.of(short=15, full=1_500)))


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
        for path in ("/", "/health", "/metrics", "/nowhere", "/overview", "/s/x", "/live?now=1", "/mcp"):
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
    hidden, samples, seen = recall(setting, environment)
    hits, lines = apart(false_hits, environment, files=_code(setting))
    for trouble in sorted(set(seen)):
        setting.say(trouble)
    own = [kind for kind in seen if kind.startswith(OWN_KIND)]
    figure = (
        f"{hidden:,} of {samples:,} secrets of {len(KINDS)} kinds replaced ({hidden / samples:.1%}), {len(own)} of our own kind"
        f" left; {hits:,} false hits in {lines:,} lines of code ({hits / lines:.2%})"
    )
    met = hidden >= RECALL * samples and not own and hits < FALSE_HITS * lines and len(KINDS) >= 40
    return Outcome(met=met, figure=figure, counts={"inputs": samples, "leaked": len(own)})


def own_secrets(setting: Setting, environment: Environment) -> Outcome:
    """Where tokens of the program are found."""
    looked, found = own_tokens(setting, environment)
    for trouble in found[:10]:
        setting.say(trouble)
    figure = f"own tokens found {len(found)} times in {looked:,} places"
    return Outcome(met=not found, figure=figure, counts={"inputs": looked, "leaked": len(found)})
