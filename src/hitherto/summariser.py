"""The summariser port. The docstrings are the contract.

A summariser is given entries and gives back text and facts. It never touches the store and has no tools; what it
writes is data, which the service checks, completes and measures before anything is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hitherto.model import Entry, Usage, Value


class CompactionPolicy(Value, frozen=True):
    """When and how a context is compacted. Tokens are the provider's if known, else estimated.

    A context is compacted before a turn when it takes more than `at` of the model's window, and on request. Its end is
    kept word for word: `kept_tokens`, or `kept_share` of the whole if that is less, and at least the last exchange. The summary takes at most `summary_tokens`, or `summary_share` of what it stands for. It
    names at least so many open questions and exact identifiers, as far as there are any; at most `facts` are drawn. After a reset
    the context begins with a recap of at most `recap_tokens`; 0: with nothing. A turn is given facts of at most
    `memory_tokens`; 0: no memory at all.
    """

    at: float = 0.8
    kept_tokens: int = 20_000
    kept_share: float = 0.1
    summary_tokens: int = 4_000
    summary_share: float = 0.5
    questions: int = 12
    identifiers: int = 60
    facts: int = 300
    recap_tokens: int = 0
    memory_tokens: int = 1_000


class Finding(Value, frozen=True):
    """A fact that was found: what it says, in words that stand alone, and the entries it was drawn from.

    `subject` names what it is about, if only one thing can be true of that: a newer fact about it takes its place.
    """

    text: str
    kind: str = "fact"
    confidence: float | None = None
    subject: str | None = None
    entries: tuple[str, ...] = ()


class Summary(Value, frozen=True):
    """What takes the place of entries, and what is to be remembered of them.

    `facts` is None if whoever wrote the text looked for none: then the built-in summariser's are taken. `model` and
    `usage` say what it was written with.
    """

    text: str
    facts: tuple[Finding, ...] | None = ()
    model: str | None = None
    usage: Usage | None = None


class Summariser(Protocol):
    """Something that can summarise."""

    async def summarise(
        self, retired: Sequence[Entry], kept: Sequence[Entry], policy: CompactionPolicy
    ) -> Summary:
        """A summary of the retired entries, and facts from them; also from those that are kept, if it likes.

        An earlier summary stands among the retired ones with `compaction` in its metadata: the new one takes its
        place too. What is kept follows the summary word for word, so the summary is empty of it. Raises an
        `EngineError` if it could not be done this time: then the built-in summariser does it. Any other error ends
        the compaction.
        """
