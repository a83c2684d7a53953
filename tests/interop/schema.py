"""The official JSON schema of the protocol, as its npm package ships it, held against what an agent says."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.interop.packages import SDK

Json = dict[str, Any]
OWN = "_hitherto/"


class Schema:
    """`check` takes the lines of an agent, in order, and `note` those of its client, unless it is known what it has
    asked: the method of each request."""

    def __init__(self, asked: dict[Any, str] | None = None) -> None:
        self._asked: dict[Any, str] = {} if asked is None else asked
        self.checked = 0

    def note(self, line: str | bytes) -> None:
        """A line of the client: what it asks for says what the answer must be."""
        message = json.loads(line)
        if isinstance(message, dict) and "method" in message and "id" in message:
            self._asked[message["id"]] = message["method"]

    def check(self, line: str | bytes) -> Json:
        """A line of the agent, which must be a message of the protocol and have nothing of its own outside `_meta`."""
        message: Json = json.loads(line)
        _hold(message, _whole())
        if "method" in message:
            self._check_call(message["method"], message.get("params"))
        elif "error" in message:
            _hold(message["error"], _definition("Error"))
        else:
            self._check_result(self._asked[message["id"]], message["result"])
        self.checked += 1
        return message

    def _check_call(self, method: str, params: Any) -> None:
        if method.startswith(OWN):
            return
        _hold(params, _definition(_names("client" if method[0] != "$" else "protocol", "")[method]))
        if method == "session/update":
            _hold(params["update"], _definition("SessionUpdate"))

    def _check_result(self, method: str, result: Any) -> None:
        if method.startswith(OWN):
            return
        _hold(result, _definition(_names("agent", "Response")[method]))
        if method == "session/list":
            for row in result["sessions"]:
                _hold(row, _definition("SessionInfo"))


@cache
def _read() -> Json:
    schema: Json = json.loads((SDK / "schema" / "v1" / "schema.unstable.json").read_text())
    return schema


@cache
def _whole() -> Draft202012Validator:
    return Draft202012Validator(_read())


@cache
def _definition(name: str) -> Draft202012Validator:
    """The part of that name, closed: members that it does not name are not taken."""
    closed = {"$ref": f"#/$defs/{name}", "$defs": _read()["$defs"], "unevaluatedProperties": False}
    return Draft202012Validator(closed)


@cache
def _names(side: str, ending: str) -> dict[str, str]:
    """The name of the part that describes a method's parameters, or its answer."""
    endings = (ending,) if ending else ("Request", "Notification")
    return {
        part["x-method"]: name
        for name, part in _read()["$defs"].items()
        if part.get("x-side") == side and name.endswith(endings)
    }


def _hold(value: Any, validator: Draft202012Validator) -> None:
    errors = [f"{error.json_path}: {error.message}"[:300] for error in validator.iter_errors(value)]
    assert not errors, (errors[:3], str(value)[:600])
