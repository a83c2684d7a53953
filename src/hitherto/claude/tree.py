"""Which records of a transcript are the conversation, as the SDK and the command line show it.

A transcript is a tree. The conversation is the path from the root to one leaf, plus what the path misses: messages that
a compaction kept, and parallel tool calls. Sync reads transcripts with another contract (`sources/claude/graph.py`):
docs/claude.md, "Which messages are the conversation", states the differences, and a test holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import msgspec

from hitherto.claude.chain import KINDS, NOTHING, Link, is_aside, is_spoken
from hitherto.claude.parallel_calls import with_parallel_calls

Branch = Literal["sdk", "cli"]
"""Which leaf: the last one in the file, as the SDKs show it, or the one that `claude --resume` continues from."""


class _Messages(msgspec.Struct, rename="camel"):
    anchor_uuid: str | None = None
    uuids: list[str] = []


class _Segment(msgspec.Struct, rename="camel"):
    head_uuid: str | None = None
    anchor_uuid: str | None = None
    tail_uuid: str | None = None


class _Compaction(msgspec.Struct, rename="camel"):
    preserved_messages: _Messages | None = None
    preserved_segment: _Segment | None = None


# No uuid: what has no parent is not found under it.
_NOBODY = "\0"
_compaction = msgspec.json.Decoder(_Compaction)


def conversation(entries: Sequence[Link], branch: Branch = "sdk") -> list[int]:
    """The conversation, as places in `entries`, oldest first. `entries` are the links of one transcript, in its order.

    The branch `cli` is what the command line would resume; where a parent is missing, it begins there. The branch `sdk`
    continues from the record before, so that a damaged record hides no others.
    """
    tree = Tree(entries, bridged=branch == "sdk")
    leaf = tree.resumed_leaf() if branch == "cli" else tree.last_leaf()
    return [] if leaf is None else with_parallel_calls(entries, tree.places, tree.path_to(leaf))


def subagent_conversation(entries: Sequence[Link]) -> list[int]:
    """The same for the transcript of a subagent, which has no branches: its leaf is the last thing said."""
    tree = Tree(entries, bridged=True)
    spoken = [place for place, entry in enumerate(entries) if entry.uuid is not None and is_spoken(entry)]
    return with_parallel_calls(entries, tree.places, tree.path_to(spoken[-1])) if spoken else []


class Tree:
    """The links that make up the conversation, each under its parent, as compactions left them.

    `bridged`: a link whose parent is missing continues from the one written before it.
    """

    def __init__(self, entries: Sequence[Link], *, bridged: bool) -> None:
        self._entries = entries
        self._bridged = bridged
        # Of several links with one uuid the last counts.
        self.places = {
            entry.uuid: place
            for place, entry in enumerate(entries)
            if entry.type in KINDS and entry.uuid is not None
        }
        # Parents other than those in the file, and the places that kept messages have been moved to.
        self._moved: dict[str, str] = {}
        self._ranks: dict[int, int] = {}
        # The summary behind which each message is kept, and what follows each summary.
        self._keepers: dict[str, str] = {}
        self._followers: dict[str, list[str]] = {}
        for place, entry in enumerate(entries):
            if entry.compact_metadata is not NOTHING and self._is_boundary(place):
                self._keep_messages(entry)

    def _is_boundary(self, place: int) -> bool:
        entry = self._entries[place]
        return entry.type == "system" and entry.uuid is not None and self.places.get(entry.uuid) == place

    def _keep_messages(self, boundary: Link) -> None:
        """Put the messages that a compaction kept behind its summary, and what follows the summary behind them."""
        anchor, kept = self._kept(boundary)
        if not kept:
            return
        # What an earlier compaction kept and this one too was moved for the last time: what was behind it is not kept.
        for earlier in {self._keepers[uuid] for uuid in kept if uuid in self._keepers}:
            for uuid in self._followers.pop(earlier, ()):
                self._moved.pop(uuid, None)
        last, members = kept[-1], set(kept)
        self._moved |= dict(zip(kept, [anchor, *kept], strict=False))
        self._ranks[self.places[last]] = self.places[anchor]
        self._keepers |= dict.fromkeys(kept, anchor)
        self._followers[anchor] = [child for child in self._children.get(anchor, ()) if child not in members]
        self._moved |= dict.fromkeys(self._followers[anchor], last)

    @cached_property
    def _children(self) -> dict[str, list[str]]:
        """The children of each link, as the file has them."""
        children: dict[str, list[str]] = {}
        for uuid, place in self.places.items():
            children.setdefault(self._entries[place].parent_uuid or "", []).append(uuid)
        return children

    def _kept(self, boundary: Link) -> tuple[str, list[str]]:
        """The summary's uuid and those of the kept messages, as far as they are in the file."""
        own = boundary.uuid or ""
        try:
            found = _compaction.decode(boundary.compact_metadata)
        except (ValueError, RecursionError):
            return own, []
        if found.preserved_messages is not None:
            anchor, uuids = found.preserved_messages.anchor_uuid, found.preserved_messages.uuids
        elif found.preserved_segment is not None:
            anchor, uuids = found.preserved_segment.anchor_uuid, self._segment(found.preserved_segment)
        else:
            return own, []
        anchor = anchor if anchor in self.places else own
        return anchor, [uuid for uuid in dict.fromkeys(uuids) if uuid in self.places and uuid != anchor]

    def _segment(self, segment: _Segment) -> list[str]:
        """The uuids from a kept segment's head to its tail; none if the one does not lead to the other."""
        uuids: list[str] = []
        uuid = segment.tail_uuid
        seen = set()
        while uuid is not None and uuid in self.places and uuid not in seen:
            seen.add(uuid)
            uuids.append(uuid)
            if uuid == segment.head_uuid:
                return uuids[::-1]
            uuid = self._moved.get(uuid) or self._entries[self.places[uuid]].parent_uuid
        return []

    @cached_property
    def _parents(self) -> dict[int, int | None]:
        """The place of each link's parent, by its own; None for a root."""
        entries, find, moved = self._entries, self.places.get, self._moved
        parents = {place: find(entries[place].parent_uuid or _NOBODY) for place in self.places.values()}
        for uuid, parent in moved.items():
            parents[self.places[uuid]] = find(parent)
        if self._bridged:
            for place, found in parents.items():
                if found is None and entries[place].parent_uuid:
                    parents[place] = self._before.get(place)
        return parents

    @cached_property
    def _before(self) -> dict[int, int]:
        """For each link the one that the same agent wrote before it."""
        before: dict[int, int] = {}
        last: dict[tuple[bool, str | None], int] = {}
        for place in sorted(self.places.values()):
            entry = self._entries[place]
            writer = bool(entry.is_sidechain), entry.agent_id
            if writer in last:
                before[place] = last[writer]
            last[writer] = place
        return before

    def path_to(self, leaf: int) -> list[int]:
        """The places from the root to `leaf`; a circle is walked once."""
        parents = self._parents
        way = []
        seen = set()
        place: int | None = leaf
        while place is not None and place not in seen:
            seen.add(place)
            way.append(place)
            place = parents.get(place)
        return way[::-1]

    def last_leaf(self) -> int | None:
        """The last thing said that nothing said follows; what stands beside the conversation only if nothing else is."""
        return self._newest(self._leaves())

    def resumed_leaf(self) -> int | None:
        """Where `claude --resume` continues: the newest leaf below the one that the last `last-prompt` names."""
        uuid = self._marked_leaf()
        if uuid == "":
            return None
        place = self.places.get(uuid) if uuid is not None else None
        if place is None:
            return self.last_leaf()
        family = self._descendants(place)
        newest = self._newest([leaf for leaf in self._leaves() if leaf in family])
        return place if newest is None else newest

    def _marked_leaf(self) -> str | None:
        """The uuid that the last `last-prompt` names; the empty text if it says that the conversation is empty."""
        for entry in reversed(self._entries):
            if entry.type == "last-prompt":
                if entry.leaf_uuid is not None:
                    return entry.leaf_uuid
                if entry.explicit:
                    return ""
        return None

    def _newest(self, leaves: list[int]) -> int | None:
        within = [place for place in leaves if not is_aside(self._entries[place])] or leaves
        return max(within, key=lambda place: self._ranks.get(place, place), default=None)

    def _leaves(self) -> list[int]:
        """The nearest thing said above each link that has no child; if there are circles only, the last thing said."""
        parents = self._parents
        inner = set(parents.values())
        above: dict[int, int | None] = {}
        leaves = [self._spoken_above(place, parents, above) for place in parents if place not in inner]
        found = [leaf for leaf in leaves if leaf is not None]
        return found or [place for place in parents if is_spoken(self._entries[place])][-1:]

    def _spoken_above(
        self, place: int, parents: dict[int, int | None], above: dict[int, int | None]
    ) -> int | None:
        """The first thing said on the way up; `above` remembers it for each link passed, so no way is walked twice."""
        passed = []
        at: int | None = place
        while at is not None and at not in above and not is_spoken(self._entries[at]):
            passed.append(at)
            above[at] = None
            at = parents.get(at)
        found = above[at] if at is not None and at in above else at
        above.update(dict.fromkeys(passed, found))
        return found

    def _descendants(self, ancestor: int) -> set[int]:
        children: dict[int, list[int]] = {}
        for place, parent in self._parents.items():
            if parent is not None:
                children.setdefault(parent, []).append(place)
        family = {ancestor}
        waiting = [ancestor]
        while waiting:
            for child in children.get(waiting.pop(), ()):
                if child not in family:
                    family.add(child)
                    waiting.append(child)
        return family
