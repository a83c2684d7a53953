"""The reference of the gateway, made from its tables; `python -m hitherto.gateway.reference PAGE` puts it into a page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from hitherto.gateway.dispatch.errors import MEANINGS, number_of
from hitherto.gateway.dispatch.method import NAMED, Method, Owns
from hitherto.gateway.dispatch.openrpc import document
from hitherto.gateway.methods import METHODS
from hitherto.model import Json
from hitherto.values.scopes import MEANINGS as SCOPES

LAST = ("idempotency_key", "expected_revision")
"""Parameters of many methods: they come after a method's own."""


def methods() -> str:
    """Every method: what it does, what it needs, what it takes and gives."""
    known = _schemas()
    return "\n".join(
        f"### {name}\n\n{method.summary} Needs {_scopes(method)}; whose: {method.owns}.\n\n"
        f"```\n{_parameters(method, known)}\n-> {_result(method, known)}\n```\n"
        for name, method in METHODS.items()
    )


def shapes() -> str:
    """What stands in the parameters and the answers of methods, under a name."""
    known = _schemas()
    alone = {shape.__name__ for method in METHODS.values() for shape in (method.params, method.result)}
    rows = ((f"`{name}`", f"`{_object(known[name])}`") for name in sorted(known.keys() - alone))
    return _table(("name", "fields"), rows)


def errors() -> str:
    """Everything that can go wrong."""
    rows = (
        (
            f"`{code}`",
            str(number_of(code)),
            meaning.text,
            ", ".join(f"`{name}`: {text}" for name, text in meaning.data.items()),
        )
        for code, meaning in MEANINGS.items()
    )
    return _table(("`data.code`", "`code`", "meaning", "more in `data`"), rows)


def scopes() -> str:
    """What tokens are good for."""
    return _table(("scope", "what it allows"), ((f"`{name}`", text) for name, text in SCOPES.items()))


PARTS: Mapping[str, Callable[[], str]] = {
    "methods": methods,
    "shapes": shapes,
    "errors": errors,
    "scopes": scopes,
}


def renewed(page: str) -> str:
    """The page with each part between its marks made anew."""
    for name, made in PARTS.items():
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end of {name} -->")
        page = "".join((before, begin, made(), end, after))
    return page


def _schemas() -> Json:
    found: Json = msgspec.json.decode(document(METHODS))["components"]["schemas"]
    return found


def _scopes(method: Method) -> str:
    further = (f"`{scope}` for `{name}`" for name, scope in method.needs.items())
    return ", ".join([f"`{method.scope}`", *further])


def _parameters(method: Method, known: Json) -> str:
    schema = known[method.params.__name__]
    fields = {name: value for name, value in schema["properties"].items() if name != "session_id"}
    required = {*schema["required"]}
    if method.owns in NAMED - {Owns.SESSION_IF_NAMED}:
        required.add("session_key")
    texts = {name: _field(name, fields[name], required) for name in sorted(fields, key=LAST.__contains__)}
    return f"{{{', '.join(texts.values())}}}"


def _result(method: Method, known: Json) -> str:
    schema = known.get(getattr(method.result, "__name__", ""))
    return "the document" if schema is None else _object(schema)


def _object(schema: Json) -> str:
    if "properties" not in schema:
        return _type(schema)
    required = {*schema["required"]}
    return f"{{{', '.join(_field(name, value, required) for name, value in schema['properties'].items())}}}"


def _field(name: str, schema: Json, required: set[str]) -> str:
    default = schema.get("default")
    written = "" if default in (None, []) else f" = {msgspec.json.encode(default).decode()}"
    kind = _type(schema)
    if name in required:
        kind = kind.removesuffix(" | null") if name == "session_key" else kind
        return f"{name}: {kind}"
    return f"{name}?: {kind.removesuffix(' | null') if not written else kind}{written}"


def _type(schema: Json) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    if schema.get("type") == "array":
        return f"[{_type(schema.get('items', {}))}]"
    return str(schema.get("type", "any"))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(renewed(path.read_text()))
