"""The built-in summariser: no model, no network, the same entries the same summary."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hitherto.model import Entry
from hitherto.service.digest import digest
from hitherto.service.estimating import total
from hitherto.service.extracting import Statement, statements
from hitherto.summariser import CompactionPolicy, Finding, Summary


class Extractive:
    """Summarises by choosing: each line of the summary, and each fact, is a sentence that somebody said.

    What was found worth keeping is not looked for again.
    """

    def __init__(self, found: Sequence[Statement] | None = None) -> None:
        self._found = found

    async def summarise(
        self, retired: Sequence[Entry], kept: Sequence[Entry], policy: CompactionPolicy
    ) -> Summary:
        """Done in a thread: a long conversation takes a while, and others are to be served meanwhile."""
        return await asyncio.to_thread(extracted, retired, kept, policy, self._found)


def extracted(
    retired: Sequence[Entry],
    kept: Sequence[Entry],
    policy: CompactionPolicy,
    found: Sequence[Statement] | None = None,
) -> Summary:
    """The summary of what is retired, and the facts of all."""
    found = statements([*retired, *kept]) if found is None else found
    text = digest(retired, [each for each in found if each.at < len(retired)], room_for(retired, policy))
    return Summary(text=text, facts=findings(found, policy))


def room_for(retired: Sequence[Entry], policy: CompactionPolicy) -> int:
    """How many tokens a summary of these may take."""
    return min(policy.summary_tokens, int(policy.summary_share * total(retired).number))


def findings(found: Sequence[Statement], policy: CompactionPolicy) -> tuple[Finding, ...]:
    """The surest of what was found, as facts, in the order in which it was said."""
    surest = sorted(found, key=lambda each: -each.confidence)[: policy.facts]
    return tuple(
        Finding(
            text=each.text,
            kind=each.kind,
            confidence=each.confidence,
            subject=each.subject,
            entries=(each.entry,),
        )
        for each in sorted(surest, key=lambda each: each.at)
    )
