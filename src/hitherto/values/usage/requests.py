"""Requests to models: what each has used and cost, which of them are one and the same, and sums of them. Pure.

A request is known by the provider's ids where an agent writes them down. Where it does not, two requests of another
agent's sessions are the same if they were made at the same moment, to the same model, and used the same; elsewhere
also the id of the message must be the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import msgspec

from hitherto.limits import NAME_CHARS, is_storable
from hitherto.model import Json, Usage, Value, decode_json
from hitherto.values.days import MICROS, earlier_form

Price = Callable[[str | None, Usage, int], int | None]
"""What a request to a model costs at a time, in millionths of a dollar; None if that is not known."""


class Request(NamedTuple):
    """One request: where its answer stands, when it was made, and what it used.

    `cost` is in millionths of a dollar, None if nobody knows; `reported` says that it is what the agent or the provider
    said, not an estimate. `key` is the same for the same request, wherever it is kept.
    """

    log: int
    seq: int
    at: int
    model: str
    key: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost: int | None
    reported: bool


class CountedEntry(Value, frozen=True):
    """As much of an entry as is counted."""

    id: str
    at: int
    role: str = "assistant"
    model: str | None = None
    usage: Usage | None = None


E_ = TypeVar("E_", bound=CountedEntry)


def light(payload: bytes, decoder: msgspec.json.Decoder[E_]) -> E_:
    """As much of a stored entry as the decoder reads."""
    try:
        return decoder.decode(payload)
    except msgspec.DecodeError:  # lone surrogates, and numbers beyond 64 bits
        return msgspec.convert(decode_json(payload), decoder.type)


class Spent(NamedTuple):
    """What several requests have used, in whole numbers: costs in millionths of a dollar."""

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reported: int = 0
    estimated: int = 0
    unpriced: int = 0

    def plus(self, other: Spent) -> Spent:
        """Their sum."""
        return Spent(*map(int.__add__, self, other))


class UsageSum(Value, frozen=True):
    """What several requests have used. `input` includes what came from the cache and what was written to it.

    `cost` is all that is known of it, in dollars: `reported` as agents and providers said, `estimated` by the prices of the day. `unpriced` counts requests of which
    nobody knows what they cost.
    """

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reported: float = 0.0
    estimated: float = 0.0
    unpriced: int = 0

    @property
    def cost(self) -> float | None:
        """All that is known of what it cost; None if nothing is."""
        return None if self.requests == self.unpriced else self.reported + self.estimated

    @property
    def cost_status(self) -> str:
        """`complete` if all of the cost was reported, `estimated` if some is an estimate, `partial_missing_price` if it is
        known of some requests only, `unknown` if of none."""
        if self.cost is None:
            return "unknown"
        if self.unpriced:
            return "partial_missing_price"
        return "estimated" if self.is_estimated else "complete"

    @property
    def is_estimated(self) -> bool:
        """Whether some of the cost is estimated."""
        return self.estimated > 0

    @property
    def fields(self) -> Json:
        """The same for programs."""
        return {
            "requests": self.requests,
            "input_tokens": self.input,
            "output_tokens": self.output,
            "cache_read_tokens": self.cache_read,
            "cache_write_tokens": self.cache_write,
            "cost_usd": self.cost,
            "reported_usd": self.reported,
            "estimated_usd": self.estimated,
            "unpriced_requests": self.unpriced,
        }


def request_of(entry: CountedEntry, log: int, seq: int, *, synced: bool, price: Price) -> Request | None:
    """The request that an entry is the answer to; None if it says nothing about one."""
    used = entry.usage
    if used is None or (used.input is None and used.output is None and used.cost is None):
        return None
    model = entry.model if entry.model and is_storable(entry.model) else ""
    cost = price(entry.model, used, entry.at) if used.cost is None else round(used.cost * MICROS)
    return Request(
        log=log,
        seq=seq,
        at=entry.at,
        model=model[:NAME_CHARS],
        key=_key(entry, used, synced=synced),
        input=used.input or 0,
        output=used.output or 0,
        cache_read=used.cache_read or 0,
        cache_write=used.cache_write or 0,
        cost=cost,
        reported=used.cost is not None,
    )


def superseded(entries: Iterable[CountedEntry]) -> list[str]:
    """The ids of forms that these entries had before: only the newest form of an amended entry counts."""
    forms = (earlier_form(entry.id) for entry in entries if "~" in entry.id)
    return [form for form in forms if form is not None]


def each_once(requests: Iterable[Request], rank: Mapping[int, tuple[int, str]]) -> Iterator[Request]:
    """The requests, each once: in the log of the lowest rank, and as it is where most was written; a copy may have been
    made before its answer was whole.

    Logs that have no rank are left out.
    """
    found: dict[int, Request] = {}
    for request in requests:
        if request.log not in rank:
            continue
        known = found.get(request.key)
        found[request.key] = request if known is None else _joined(known, request, rank)
    yield from found.values()


def sum_of(requests: Iterable[Request]) -> UsageSum:
    """All of them together."""
    return usage_sum(spent_by(requests))


def spent_by(requests: Iterable[Request]) -> Spent:
    """All of them together, in whole numbers."""
    count = used_in = used_out = read = written = reported = estimated = unpriced = 0
    for request in requests:
        count += 1
        used_in += request.input
        used_out += request.output
        read += request.cache_read
        written += request.cache_write
        if request.cost is None:
            unpriced += 1
        elif request.reported:
            reported += request.cost
        else:
            estimated += request.cost
    return Spent(count, used_in, used_out, read, written, reported, estimated, unpriced)


def usage_sum(spent: Spent) -> UsageSum:
    """The same in dollars."""
    return UsageSum(
        requests=spent.requests,
        input=spent.input,
        output=spent.output,
        cache_read=spent.cache_read,
        cache_write=spent.cache_write,
        reported=spent.reported / MICROS,
        estimated=spent.estimated / MICROS,
        unpriced=spent.unpriced,
    )


def _joined(one: Request, other: Request, rank: Mapping[int, tuple[int, str]]) -> Request:
    first = min(one, other, key=lambda each: (rank[each.log], -each.output, -each.seq))
    whole = max(one, other, key=lambda each: (each.output, each.log == first.log, each.seq))
    return whole._replace(log=first.log, seq=first.seq, at=first.at)


def _key(entry: CountedEntry, used: Usage, *, synced: bool) -> int:
    """63 bits by which a request is known."""
    if used.request is not None:
        said: tuple[object, ...] = ("id", used.request)
    else:
        told = (entry.at, entry.model, used.input, used.output, used.cache_read, used.cache_write)
        said = told if synced and used.input and used.output else (*told, entry.id.partition("~")[0])
    digest = hashlib.blake2b(repr(said).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) >> 1
