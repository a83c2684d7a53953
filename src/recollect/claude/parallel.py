"""Calls of tools that ran side by side, and their results.

A response with several calls is one link per call, chained one after the other, and each result hangs on its own call.
The way from the leaf to the root passes one result only, and no call after the one it answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from recollect.claude import lines
from recollect.claude.chain import Link, is_spoken, same_writer


class _Block(msgspec.Struct):
    type: str = ""
    id: str | None = None
    tool_use_id: str | None = None


class Tools(msgspec.Struct):
    """A message, as far as tools are concerned: the response it is part of, its calls and the calls it answers."""

    id: str | None = None
    content: list[_Block] | str | None = None

    @property
    def calls(self) -> list[str]:
        """The ids of the calls in this message."""
        return [block.id for block in self._blocks("tool_use") if block.id is not None]

    @property
    def answers(self) -> list[str]:
        """The ids of the calls that this message answers."""
        return [block.tool_use_id for block in self._blocks("tool_result") if block.tool_use_id is not None]

    @property
    def is_result(self) -> bool:
        """Whether this is the result of a tool."""
        return any(self._blocks("tool_result"))

    def _blocks(self, kind: str) -> Iterator[_Block]:
        if isinstance(self.content, list):
            yield from (block for block in self.content if block.type == kind)


_tools = msgspec.json.Decoder(Tools)


def tools_of(entry: Link) -> Tools:
    """What the message of a link says about tools; nothing, if it is no message as they are."""
    try:
        return _tools.decode(entry.message)
    except (ValueError, RecursionError):
        return _loose_tools(lines.decode(bytes(entry.message)))


def _loose_tools(message: object) -> Tools:
    """The same for messages with values of other types than usual."""
    if not isinstance(message, dict):
        return Tools()
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    found = [
        _Block(str(block.get("type")), _text(block, "id"), _text(block, "tool_use_id")) for block in blocks
    ]
    return Tools(_text(message, "id"), found)


def _text(values: dict[str, object], name: str) -> str | None:
    value = values.get(name)
    return value if isinstance(value, str) else None


def with_parallel_calls(entries: Sequence[Link], places: Mapping[str, int], way: list[int]) -> list[int]:
    """`way` with what responses on it left beside it, behind the last link of each response on the way."""
    on_way = set(way)
    if all(place in on_way or not is_spoken(entries[place]) for place in places.values()):
        return way
    inserts = _Responses(entries, places, way).left_beside()
    return [place for at in way for place in (at, *inserts.get(at, ()))]


class _Responses:
    """The model's responses and the results of their calls, wherever they are in the transcript."""

    def __init__(self, entries: Sequence[Link], places: Mapping[str, int], way: Sequence[int]) -> None:
        self._entries = entries
        self._places = places
        self._way = way
        self._taken = set(way)
        self._tools = {
            place: tools_of(entries[place]) for place in places.values() if is_spoken(entries[place])
        }
        self._members: dict[str, list[int]] = {}
        # Who made a call; None if two responses claim it.
        self._owners: dict[str, int | None] = {}
        self._results: dict[int, list[int]] = {}
        self._find_members()
        self._find_results()

    def _response(self, place: int) -> str | None:
        """The id of the response that a link is part of."""
        return (self._tools[place].id or None) if self._entries[place].type == "assistant" else None

    def _find_members(self) -> None:
        for place, tools in self._tools.items():
            response = self._response(place)
            if response is None:
                continue
            self._members.setdefault(response, []).append(place)
            for call in tools.calls:
                owner = self._owners.get(call, place)
                mine = owner is not None and self._response(owner) == response
                self._owners[call] = place if mine else None

    def _find_results(self) -> None:
        """Note each result under every link it may belong to: its parent, its source, the owners of its calls."""
        for place, tools in self._tools.items():
            entry = self._entries[place]
            if entry.type != "user" or not entry.parent_uuid or not tools.is_result:
                continue
            claims = [self._owners.get(call) for call in tools.answers]
            if entry.source_uuid is not None:
                claims.insert(0, self._places.get(entry.source_uuid))
            own = [at for at in claims if at is not None and same_writer(entry, self._entries[at])]
            parent = self._places.get(entry.parent_uuid)
            for at in dict.fromkeys([parent, *own] if parent is not None else own):
                self._results.setdefault(at, []).append(place)

    def left_beside(self) -> dict[int, list[int]]:
        """What to insert, by the place to insert it behind."""
        last = {
            response: place
            for place in self._way
            if place in self._tools and (response := self._response(place))
        }
        inserts = {}
        for response, anchor in last.items():
            found = self._left_by(response)
            self._taken.update(found)
            if found:
                inserts[anchor] = found
        return inserts

    def _left_by(self, response: str) -> list[int]:
        members = self._members[response]
        siblings = [place for place in members if place not in self._taken]
        results = dict.fromkeys(
            place for member in members for place in self._results.get(member, ()) if place not in self._taken
        )
        uuids = {self._entries[member].uuid for member in members}
        own = [place for place in results if self._entries[place].parent_uuid in uuids]
        strays = sorted(place for place in results if self._entries[place].parent_uuid not in uuids)
        own += self._that_answer(strays, own, set(members))
        return sorted(siblings, key=self._stamp) + sorted(own, key=self._stamp)

    def _that_answer(self, strays: Sequence[int], own: Sequence[int], members: set[int]) -> list[int]:
        """Those results with a parent elsewhere that answer a call of this response which nothing else answers."""
        if not strays:
            return []
        spoken = [place for place in self._way if place in self._tools]
        answered = {call for place in (*spoken, *own) for call in self._tools[place].answers}
        found = []
        for place in strays:
            calls = self._tools[place].answers
            if any(call not in answered and self._owners.get(call) in members for call in calls):
                answered.update(calls)
                found.append(place)
        return found

    def _stamp(self, place: int) -> str:
        return self._entries[place].timestamp or ""
