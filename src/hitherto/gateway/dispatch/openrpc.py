"""The table of methods as an OpenRPC document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hitherto.gateway.dispatch.errors import MEANINGS, number_of
from hitherto.gateway.dispatch.method import NAMED, Method, Owns
from hitherto.model import Json

OPENRPC = "1.3.2"
VERSION = "1.0.0"
"""The version of the methods: the first number rises when a client would have to change."""
SESSION_NAMES = ("session_key", "session_id")
"""One of these is given, by methods that are about a session."""
NAMING = frozenset(("session_not_found", "entry_not_found", "branch_not_found", "checkpoint_not_found"))
WRITING = frozenset(
    ("conflict", "already_exists", "revision_conflict", "idempotency_conflict", "busy", "lease_lost", "read_only", "store_full")
)  # fmt: skip
RUNNING = frozenset(
    code for code in MEANINGS if code.startswith(("model_", "engine_", "interrupted", "context_"))
)
"""What goes wrong only in methods that name a session, that write, that ask a model; the rest may go wrong in any."""
_REF = "#/components/schemas/{name}"


def document(methods: Mapping[str, Method]) -> bytes:
    """The document, as JSON."""
    shapes = dict.fromkeys(shape for method in methods.values() for shape in (method.params, method.result))
    references, schemas = msgspec.json.schema_components(shapes, ref_template=_REF)
    schema_of = dict(zip(shapes, references, strict=True))
    return msgspec.json.encode(
        {
            "openrpc": OPENRPC,
            "info": {
                "title": "Hitherto gateway",
                "version": VERSION,
                "description": "Sessions of agents over JSON-RPC 2.0. Parameters are given by name; times are milliseconds.",
            },
            "methods": [
                _method(name, method, schemas[method.params.__name__], schema_of[method.result])
                for name, method in methods.items()
            ],
            "components": {"schemas": schemas, "errors": errors()},
        }
    )


def errors() -> Json:
    """What can go wrong, by stable code."""
    return {
        code: {
            "code": number_of(code),
            "message": meaning.text,
            "data": {"code": code, **meaning.data},
        }
        for code, meaning in MEANINGS.items()
    }


def _codes(method: Method) -> list[str]:
    """What can go wrong in a method."""
    out: set[str] = {"method_not_found"}
    for codes, gives in (
        (NAMING, method.owns is not Owns.NOTHING),
        (WRITING, method.writes),
        (RUNNING, method.waits),
    ):
        out |= set() if gives else codes
    return [code for code in MEANINGS if code not in out]


def _method(name: str, method: Method, params: Json, result: Any) -> Json:
    required = set(params.get("required", ()))
    named = {"x-one-of": [SESSION_NAMES]} if method.owns in NAMED - {Owns.SESSION_IF_NAMED} else {}
    return {
        "name": name,
        "summary": method.summary,
        "paramStructure": "by-name",
        "params": [
            {"name": field, "required": field in required, "schema": schema}
            for field, schema in params["properties"].items()
        ],
        "result": {"name": "result", "schema": result},
        "errors": [{"$ref": f"#/components/errors/{code}"} for code in _codes(method)],
        **named,
        "x-scope": method.scope,
        "x-ownership": str(method.owns),
        "x-needs": dict(method.needs),
    }
