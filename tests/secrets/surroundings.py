"""Where secrets stand: the same one in eight kinds of text, each written as that kind of text writes it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote

PLAIN = re.compile(r"[\w./+~@%^-][\w./+~@%^=|-]*")
PIECE = re.compile(r"[A-Za-z0-9]{8,}")
MARK = re.compile(r"\[redacted: [^\]]*\]")
WORD = re.compile(r"[A-Za-z0-9]{4,}")


class Sample(NamedTuple):
    """Something with a secret in it. What may not be seen of it afterwards is `hidden`."""

    text: str
    hidden: str
    name: str = ""
    """Under which name it is given, if it is known by that; otherwise its form must tell."""

    def shown(self, text: str) -> bool:
        """Whether a text still shows the secret or a longer piece of it."""
        pieces = PIECE.findall(self.hidden) or WORD.findall(self.hidden) or [self.hidden]
        left = MARK.sub("", text)
        return any(piece in left for piece in pieces)


def _quoted(text: str) -> str:
    return text if PLAIN.fullmatch(text) else json.dumps(text)


def _bare(name: str, text: str) -> str:
    return f"{name}={_quoted(text)}" if name else text


def _json(name: str, text: str) -> str:
    return json.dumps({"id": 7, name or "value": text, "on": True})


def _yaml(name: str, text: str) -> str:
    return f"settings:\n  retries: 3\n  {name or 'value'}: {_quoted(text)}\n  port: 8080\n"


def _env(name: str, text: str) -> str:
    return f"PORT=8080\n{(name or 'value').upper()}={_quoted(text)}\nDEBUG=1\n"


def _shell(name: str, text: str) -> str:
    return f"cd /srv && export {(name or 'value').upper()}={shlex.quote(text)} && ./run.sh --verbose"


def _url(name: str, text: str) -> str:
    return f"GET https://api.example.com/v2/items?{name or 'value'}={quote(text, safe='')}&page=2"


def _python(name: str, text: str) -> str:
    return f"def connect():\n    {name or 'value'} = {text!r}\n    return open_it({name or 'value'})\n"


def _terraform(name: str, text: str) -> str:
    return f'variable "{name or "value"}" {{\n  type    = string\n  default = {json.dumps(text)}\n}}\n'


SURROUNDINGS: dict[str, Callable[[str, str], str]] = {
    "bare": _bare,
    "JSON": _json,
    "YAML": _yaml,
    ".env": _env,
    "shell": _shell,
    "URL": _url,
    "Python": _python,
    "Terraform": _terraform,
}


def surrounded(sample: Sample) -> dict[str, str]:
    """The sample in every surrounding."""
    return {where: write(sample.name, sample.text) for where, write in SURROUNDINGS.items()}
