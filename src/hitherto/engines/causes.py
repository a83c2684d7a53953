"""Why a provider was not reached, in words of our own: those of the libraries hold addresses, or nothing at all."""

from __future__ import annotations

from collections.abc import Iterator

UNSENT = {
    "UnsupportedProtocol": "its address must begin with http:// or https://",
    "InvalidURL": "its address cannot be read",
    "LocalProtocolError": "the request cannot be sent: is there an odd character in the key or the address?",
}
"""Errors by the name of their class, as each HTTP library has its own. After these, it makes no sense to try again."""
CAUSES = UNSENT | {
    "ConnectionRefusedError": "nobody answers at its address",
    "gaierror": "its host is not known",
    "SSLCertVerificationError": "its certificate is not trusted",
    "TimeoutException": "it does not answer",
    "TimeoutError": "it does not answer",
    "SSLError": "no secure connection could be made",
    "ProxyError": "the proxy does not let it through",
    "RemoteProtocolError": "it broke off",
    "ConnectionError": "it broke off",
    "ReadError": "it broke off",
    "WriteError": "it broke off",
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
