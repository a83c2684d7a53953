"""The table of methods as an OpenRPC document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from recollect.gateway.calling import Method
from recollect.gateway.errors import MEANINGS, number_of
from recollect.model import Json

OPENRPC = "1.3.2"
VERSION = "1.0.0"
"""The version of the methods: the first number rises when a client would have to change."""
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
                "title": "Recollect gateway",
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


def _method(name: str, method: Method, params: Json, result: Any) -> Json:
    required = set(params.get("required", ()))
    return {
        "name": name,
        "summary": method.summary,
        "paramStructure": "by-name",
        "params": [
            {"name": field, "required": field in required, "schema": schema}
            for field, schema in params["properties"].items()
        ],
        "result": {"name": "result", "schema": result},
        "x-scope": method.scope,
        "x-ownership": str(method.owns),
        "x-needs": dict(method.needs),
    }
