"""What a server asks the user while a tool of it runs, as values of ours and back."""

from __future__ import annotations

from urllib.parse import urlsplit

import mcp_types
from pydantic import ValidationError

from hitherto.clean_text import clean, clean_lines
from hitherto.engine import Elicitation, Reply
from hitherto.engines.tool_calls import is_proper
from hitherto.ids import uuid7
from hitherto.model import encode

MESSAGE_CHARS = 4_000
SCHEMA_BYTES = 64_000
URL_CHARS = 4_000


def elicitation_of(
    server: str, params: mcp_types.ElicitRequestParams, ways: frozenset[str]
) -> Elicitation | mcp_types.ErrorData:
    """The question, or why it cannot be asked."""
    message = clean_lines(params.message)[:MESSAGE_CHARS]
    if params.mode not in ways:
        return _invalid(f"the client cannot answer questions of the mode {params.mode!r}")
    if isinstance(params, mcp_types.ElicitRequestURLParams):
        if (
            urlsplit(params.url).scheme not in ("http", "https")
            or clean(params.url)[:URL_CHARS] != params.url
        ):
            return _invalid("the URL is not one that can be visited")
        return Elicitation(id=uuid7(), server=server, message=message, url=params.url)
    schema = params.requested_schema
    if not is_proper(schema) or len(encode(schema)) > SCHEMA_BYTES:
        return _invalid("the schema is too large, or nested too deep")
    return Elicitation(id=uuid7(), server=server, message=message, schema=schema)


def result_of(reply: Reply) -> mcp_types.ElicitResult:
    """The reply as the server gets it; one with content that no form can have is none."""
    content = reply.content if reply.action == "accept" else None
    try:
        return mcp_types.ElicitResult(action=reply.action, content=content)
    except ValidationError:
        return mcp_types.ElicitResult(action="cancel")


def _invalid(why: str) -> mcp_types.ErrorData:
    return mcp_types.ErrorData(code=mcp_types.INVALID_PARAMS, message=why)
