"""What a provider's failure means: whether to try again, and which of our errors it is. No message holds a key."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus

from pydantic_ai.exceptions import (
    AgentRunError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelUnavailableError,
    UserError,
)

from hitherto.engines.tools.run_command import secret_values
from hitherto.errors import (
    ContextTooLong,
    EngineError,
    ModelBusy,
    ModelRefused,
    ModelUnreachable,
)
from hitherto.secrets import redact

Failed = AgentRunError | UserError | NotImplementedError
FAILED = (AgentRunError, UserError, NotImplementedError)
"""All that the model layer raises when a request cannot be made or answered."""

_PASSING = (ModelRateLimitError, ModelUnavailableError, ModelServerError, ModelConnectionError)
_TOO_LONG = (
    "prompt is too long",
    "input is too long",
    "input token count",
    "too many tokens",
    "context length",
    "context size",
    "context window",
    "context_length",
    "maximum context",
    "maximum number of tokens",
    "reduce the length",
)
"""How servers say it that have no code for it."""
_LONGEST = 500
_EXAMINED = 10 * _LONGEST

ERRORS: tuple[tuple[type[Failed], type[EngineError], str], ...] = (
    (
        ModelAuthenticationError,
        ModelRefused,
        "the provider of {model} does not accept the key, or the key is not allowed to use this model",
    ),
    (
        ModelQuotaExceededError,
        ModelRefused,
        "the provider of {model} reports that the account has no credit left",
    ),
    (
        ModelNotFoundError,
        ModelRefused,
        "the provider does not know the model {model}, or the provider's address is wrong",
    ),
    (
        ModelContextWindowExceededError,
        ContextTooLong,
        "the conversation does not fit the window of {model}: {said}",
    ),
    (ModelRateLimitError, ModelBusy, "the provider of {model} is limiting requests: {said}"),
    (ModelUnavailableError, ModelBusy, "the provider of {model} is overloaded: {said}"),
    (ModelServerError, ModelUnreachable, "the provider of {model} failed: {said}"),
    (ModelConnectionError, ModelUnreachable, "the connection to the provider of {model} failed: {said}"),
    (ModelRequestRejectedError, EngineError, "the provider of {model} rejected the request: {said}"),
)
"""The first row that matches decides."""


def is_transient(error: Failed) -> bool:
    """Whether the same request may well succeed a little later."""
    return isinstance(error, _PASSING) and not (
        isinstance(error, ModelQuotaExceededError) or is_unsent(error)
    )


def wanted_pause(error: Failed) -> float | None:
    """How many seconds the provider asks to wait."""
    return error.retry_after if isinstance(error, ModelAPIError) else None


def engine_error(error: Failed, model: str) -> EngineError:
    """The error to raise for it."""
    said = _provider_text(error)
    if _is_too_long(error, said):
        return ContextTooLong(f"the conversation does not fit the window of {model}: {said}")
    for kind, ours, words in ERRORS:
        if isinstance(error, kind):
            return ours(words.format(model=model, said=said))
    return EngineError(f"the request to {model} failed: {said}")


def _is_too_long(error: Failed, said: str) -> bool:
    if isinstance(error, ModelHTTPError) and error.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return True
    return isinstance(error, ModelRequestRejectedError) and any(words in said.lower() for words in _TOO_LONG)


def summary(error: Failed) -> str:
    """In a few words, for whoever watches."""
    if isinstance(error, ModelHTTPError):
        return f"{error.status_code} {_provider_text(error)}"
    return _provider_text(error)


def _provider_text(error: Failed) -> str:
    """What the provider itself said, or why it was not reached, in one line of bounded length, without any key."""
    if isinstance(error, ModelConnectionError) and (cause := cause_of(error)):
        return cause
    body = error.body if isinstance(error, ModelHTTPError) else None
    match body:
        case {"error": {"message": str(message)}} | {"message": str(message)}:
            said = message
        case str(message):
            said = message
        case _:
            said = str(error)
    return without_keys(" ".join(said[:_EXAMINED].split()))[:_LONGEST] or type(error).__name__


UNSENT = {
    "UnsupportedProtocol": "its address must begin with http:// or https://",
    "InvalidURL": "its address is not a valid URL",
    "LocalProtocolError": "the request cannot be sent: check the key and the address for invalid characters",
}
"""Errors by the name of their class, as each HTTP library has its own. After these, it makes no sense to try again."""
CAUSES = UNSENT | {
    "ConnectionRefusedError": "connection refused",
    "gaierror": "unknown host name",
    "SSLCertVerificationError": "its certificate is not trusted",
    "TimeoutException": "it does not answer",
    "TimeoutError": "it does not answer",
    "SSLError": "no secure connection could be made",
    "ProxyError": "the proxy refused the connection",
    "RemoteProtocolError": "the connection was interrupted",
    "ConnectionError": "the connection was interrupted",
    "ReadError": "the connection was interrupted",
    "WriteError": "the connection was interrupted",
}


def cause_of(error: BaseException) -> str | None:
    """What lies behind an error: the outermost cause that says anything; None if none does."""
    return next((CAUSES[name] for name in _names(error) if name in CAUSES), None)


def is_unsent(error: BaseException) -> bool:
    """Whether the request was never one that could be sent."""
    return any(name in UNSENT for name in _names(error))


def _names(error: BaseException | None) -> Iterator[str]:
    """The names of what has happened, from the error to its first cause, the more special ones before."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield from (kind.__name__ for kind in type(error).__mro__)
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        else:
            error = error.__cause__ or error.__context__


def without_keys(text: str) -> str:
    """The text without what looks like a secret, and without the very keys that this process has."""
    for value in secret_values(os.environ):
        text = text.replace(value, "[redacted]")
    return redact(text, Counter())
