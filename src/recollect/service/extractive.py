"""The built-in summariser: no model, no network, the same entries the same summary."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from recollect.model import Entry
from recollect.service.digest import digest
from recollect.service.estimating import total
from recollect.service.extracting import Statement, statements
from recollect.summariser import CompactionPolicy, Finding, Summary


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
    room = min(policy.summary_tokens, int(policy.summary_share * total(retired).number))
    text = digest(retired, [each for each in found if each.at < len(retired)], room)
    surest = sorted(found, key=lambda each: -each.confidence)[: policy.facts]
    facts = [
        Finding(
            text=each.text,
            kind=each.kind,
            confidence=each.confidence,
            subject=each.subject,
            entries=(each.entry,),
        )
        for each in sorted(surest, key=lambda each: each.at)
    ]
    return Summary(text=text, facts=tuple(facts))
