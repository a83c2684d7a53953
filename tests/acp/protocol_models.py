"""Every line that an agent writes is held against the models of the protocol's own Python package."""

from __future__ import annotations

import json
from typing import Any

from acp import schema
from pydantic import BaseModel

RESULTS: dict[str, type[BaseModel]] = {
    "initialize": schema.InitializeResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/close": schema.CloseSessionResponse,
    "session/delete": schema.DeleteSessionResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
}
REQUESTS: dict[str, type[BaseModel]] = {
    "session/request_permission": schema.RequestPermissionRequest,
    "fs/read_text_file": schema.ReadTextFileRequest,
    "fs/write_text_file": schema.WriteTextFileRequest,
    "terminal/create": schema.CreateTerminalRequest,
    "terminal/output": schema.TerminalOutputRequest,
    "terminal/wait_for_exit": schema.WaitForTerminalExitRequest,
    "terminal/kill": schema.KillTerminalRequest,
    "terminal/release": schema.ReleaseTerminalRequest,
}
ELICITATIONS: dict[str, type[BaseModel]] = {
    "form": schema.CreateFormSessionElicitationRequest,
    "url": schema.CreateUrlSessionElicitationRequest,
}
NEWER: dict[str, set[str]] = {
    "notice": {"severity", "title"},
    "compaction_update": {"compactionId", "status"},
    "compaction_summary_chunk": {"compactionId", "content"},
}
"""Updates that the package does not know yet, with the fields that they must have."""
NEWER_RESULTS: dict[str, set[str]] = {
    "authenticate": set(),
    "logout": set(),
    "session/archive": set(),
    "session/unarchive": set(),
    "session/set_title": {"title"},
    "session/status": {"status"},
}


def checked(line: bytes, asked: dict[Any, str]) -> dict[str, Any]:
    """The message in a line, if it is one; `asked` has the method of each request that may be answered."""
    assert line.endswith(b"\n"), line[-100:]
    message: dict[str, Any] = json.loads(line)
    assert message["jsonrpc"] == "2.0"
    assert set(message) <= {"jsonrpc", "id", "method", "params", "result", "error"}
    if "method" in message:
        _check_call(message["method"], message["params"])
    elif "error" in message:
        schema.Error.model_validate(message["error"])
        assert "id" in message
    else:
        _check_result(asked[message["id"]], message["result"])
    return message


def _check_call(method: str, params: dict[str, Any]) -> None:
    if method == "session/update":
        _check_update(params)
    elif method == "elicitation/create":
        ELICITATIONS[params["mode"]].model_validate(params)
    elif method in REQUESTS:
        REQUESTS[method].model_validate(params)
    else:
        assert method in ("_hitherto/session/list/changes", "$/cancel_request"), method


def _check_update(params: dict[str, Any]) -> None:
    assert isinstance(params["sessionId"], str)
    update = params["update"]
    if needed := NEWER.get(update["sessionUpdate"]):
        assert needed <= set(update)
        return
    seen = schema.SessionNotification.model_validate(params)
    back = seen.update.model_dump(by_alias=True, exclude_unset=True, mode="json")
    # The package drops what it does not understand: then something would be missing here.
    assert set(update) - {"name"} <= set(back), (update, back)


def _check_result(method: str, result: dict[str, Any]) -> None:
    assert isinstance(result, dict)
    if method in RESULTS:
        RESULTS[method].model_validate(result)
    elif method in NEWER_RESULTS:
        assert set(result) - {"_meta"} == NEWER_RESULTS[method]
    else:
        assert method.startswith("_hitherto/")
