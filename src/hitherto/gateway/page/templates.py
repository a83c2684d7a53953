"""The templates, the files that they load, and the policy under which a browser shows them.

Every value is cleaned of what could turn or hide the text around it, and escaped, where it is put in. What is markup
already was made by `rendering` and its neighbours.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from hitherto.clean_text import clean_lines
from hitherto.presentation import formats, usage

HTML = b"text/html; charset=utf-8"
KINDS = {"css": b"text/css; charset=utf-8", "js": b"text/javascript; charset=utf-8", "svg": b"image/svg+xml"}
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    b" base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""No script but our files, no style but our file, nothing from elsewhere, no markup made by scripts, no frame around it."""


class Asset(NamedTuple):
    """A file that pages load."""

    kind: bytes
    body: bytes


@cache
def assets() -> dict[str, Asset]:
    """The files, by name."""
    folder = files(__package__).joinpath("static")
    read = {
        path.name: path.read_bytes() for path in folder.iterdir() if path.name.rpartition(".")[2] in KINDS
    }
    return {name: Asset(KINDS[name.rpartition(".")[2]], body) for name, body in sorted(read.items())}


@cache
def stamp() -> str:
    """Changes with the files, so that browsers may keep them for as long as they like."""
    digest = hashlib.sha256()
    for name, asset in assets().items():
        digest.update(name.encode() + b"\0" + asset.body)
    return digest.hexdigest()[:16]


def page(name: str, **values: Any) -> bytes:
    """A template as the bytes that go out."""
    return _environment().get_template(name).render(values).encode("utf-8", "replace")


def named(text: str) -> str:
    """An id as it stands in an address, and in an attribute."""
    return quote(text, safe="", errors="replace")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_cleaned,
    )
    made.globals["static"] = lambda file: f"/static/{stamp()}/{file}"
    made.filters |= {
        "named": named,
        "changed": formats.changed,
        "count": formats.count,
        "cost": formats.cost,
        "about_cost": formats.about_cost,
        "cost_used": usage.cost,
        "tokens_used": usage.tokens,
        "duration": formats.duration,
        "folder": formats.folder,
        "found": formats.found,
        "iso": formats.iso,
        "moment": formats.moment,
        "plural": formats.plural,
    }
    return made


def _cleaned(value: Any) -> Any:
    """Plain text without anything unseen; markup of our own stays as it is."""
    return clean_lines(value) if type(value) is str else value
