"""The plan of one compaction: the context it saw, what is summarised, the summary, and the result. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from hitherto.model import Compaction, Draft, Entry, Shrunk, Text, Usage, Value, decode_entry, plain_text
from hitherto.secrets import redact
from hitherto.summaries.builtin import findings
from hitherto.summaries.extraction import Statement, statements
from hitherto.summaries.kept_tail import kept_from
from hitherto.summaries.required_content import completed, essentials
from hitherto.summariser import CompactionPolicy, Finding, Summary
from hitherto.values.token_count import ESTIMATED, PER_ENTRY, estimate, total

EMPTY = "the session is empty"
WHOLE = "there is nothing to summarise: the whole context is the last exchange"
NOT_SMALLER = (
    "the summary, with its open questions and identifiers, would not be smaller than the messages it replaces"
)
SILENT = "the summary is empty"
CHANGED = "the context changed while it was being summarised"
UNSETTLED = "the session kept changing while it was summarised; try again later"


class ContextSnapshot(NamedTuple):
    """A session's context at one moment, as stored."""

    num: int
    revision: int
    payloads: list[bytes]


class CompactionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to become of a context: the first `cut` of the entries are left out, the rest stays.

    `found` is what is worth keeping of all of them. `fallback` says why another summariser than the built-in one,
    which was asked first, did not do it. `id` is that of the summary, if it is known before.
    """

    seen: ContextSnapshot
    policy: CompactionPolicy
    entries: tuple[Entry, ...]
    cut: int
    found: tuple[Statement, ...] = ()
    text: str = ""
    findings: tuple[Finding, ...] = ()
    model: str | None = None
    usage: Usage | None = None
    fallback: str | None = None
    reason: str | None = None
    id: str | None = None

    @property
    def retired(self) -> tuple[Entry, ...]:
        """What the summary stands for."""
        return self.entries[: self.cut]

    @property
    def kept(self) -> tuple[Entry, ...]:
        """What stays word for word."""
        return self.entries[self.cut :]

    @property
    def keep(self) -> int:
        """How many entries that is."""
        return len(self.entries) - self.cut

    @property
    def draft(self) -> Draft:
        """The summary as an entry. Its tokens are estimated: it is not all the model's own words."""
        return Draft(
            role="system",
            id=self.id,
            parts=(Text(text=self.text),),
            tokens=self._tokens,
            model=self.model,
            usage=self.usage,
            meta={ESTIMATED: True},
        )

    @property
    def _tokens(self) -> int:
        return PER_ENTRY + estimate(self.text)

    def with_summary(self, given: Summary, now: int) -> CompactionPlan:
        """With this summary, completed by what it must not lose; with a reason if it will not do.

        Secrets stand in it no longer, nor in what is remembered: both outlive what was said.
        """
        day = datetime.fromtimestamp(now / 1_000, UTC).date()
        earlier = [plain_text(entry) for entry in self.retired if entry.meta.get("compaction")]
        needed = essentials([each for each in self.found if each.at < self.cut], self.policy, earlier)
        text = clean(completed(f"[Compacted summary from {day}]\n{given.text.strip()}", needed))
        facts = findings(self.found, self.policy) if given.facts is None else given.facts
        reason = None if PER_ENTRY + estimate(text) < total(self.retired).number else NOT_SMALLER
        reason = reason if given.text.strip() else SILENT
        return replace(
            self,
            text=text,
            findings=clean_findings(facts, self.policy),
            model=given.model,
            usage=given.usage,
            reason=reason,
        )

    def is_beginning_of(self, seen: ContextSnapshot) -> bool:
        """Whether what was seen then is still there, with no more than something added to it."""
        before = self.seen.payloads
        return self.seen.num == seen.num and seen.payloads[: len(before)] == before

    def moved_to(self, seen: ContextSnapshot) -> CompactionPlan:
        """The same with what was added meanwhile kept too."""
        added = map(decode_entry, seen.payloads[len(self.seen.payloads) :])
        return replace(self, seen=seen, entries=(*self.entries, *added))

    def foreseen(self, reason: str | None) -> CompactionPreview:
        """What would come of it; what is left out is only then if there is no reason against it."""
        retired, kept = total(self.retired), total(self.kept)
        return CompactionPreview(
            retired=self.retired,
            kept=self.kept,
            tokens_retired=retired.number,
            tokens_kept=kept.number,
            tokens_summary=self._tokens if self.text else 0,
            estimated=retired.estimated or kept.estimated,
            summary=self.text,
            facts=len(self.findings),
            reason=reason,
        )

    def refused(self, reason: str) -> Shrunk:
        """Nothing was changed."""
        count, tokens = len(self.entries), total(self.entries)
        return Shrunk(
            compacted=False,
            reason=reason,
            messages_before=count,
            messages_after=count,
            tokens_before=tokens.number,
            tokens_after=tokens.number,
            estimated=tokens.estimated,
            fallback=self.fallback,
        )

    def done(self, done: Compaction, facts: int) -> Shrunk:
        """It was done."""
        after = self._tokens + total(self.kept).number
        return Shrunk(
            compacted=True,
            messages_before=done.messages_before,
            messages_after=done.messages_after,
            tokens_before=total(self.entries).number,
            tokens_after=after,
            estimated=True,  # the summary's were counted by nobody
            facts_extracted=facts,
            checkpoint=done.checkpoint,
            summary=done.summary,
            fallback=self.fallback,
        )


class CompactionPreview(Value, frozen=True):
    """What making a context smaller would do: what leaves it and what stays, and how many tokens both have.

    `summary` is what the built-in summariser would put in the place of what leaves. If nothing would be changed,
    `reason` says why. `estimated` says that not all tokens were counted by a provider.
    """

    retired: tuple[Entry, ...]
    kept: tuple[Entry, ...]
    tokens_retired: int
    tokens_kept: int
    tokens_summary: int
    estimated: bool
    summary: str = ""
    facts: int = 0
    reason: str | None = None


def plan(seen: ContextSnapshot, policy: CompactionPolicy) -> CompactionPlan:
    """What to leave out of this context, and what is worth keeping of it."""
    entries = tuple(map(decode_entry, seen.payloads))
    cut = kept_from(entries, policy)
    found = tuple(statements(entries)) if cut else ()
    return CompactionPlan(seen=seen, policy=policy, entries=entries, cut=cut, found=found)


def as_compaction(done: Shrunk) -> Compaction | None:
    """The result as watchers of a turn get it; None if nothing was changed."""
    if done.checkpoint is None or done.summary is None:
        return None
    return Compaction(
        checkpoint=done.checkpoint,
        summary=done.summary,
        messages_before=done.messages_before,
        messages_after=done.messages_after,
        tokens_before=done.tokens_before,
        tokens_after=done.tokens_after,
    )


def clean_findings(facts: Sequence[Finding], policy: CompactionPolicy) -> tuple[Finding, ...]:
    """As many as are drawn, without secrets."""
    return tuple(
        replace(fact, text=clean(fact.text), subject=clean(fact.subject or "") or None)
        for fact in facts[: policy.facts]
    )


def clean(text: str) -> str:
    """The text without secrets."""
    return redact(text, Counter())
