"""Calls of tools that ran side by side, and their results.

A response with several calls is one link per call, chained one after the other, and each result hangs on its own call.
The way from the leaf to the root passes one result only, and no call after the one it answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from hitherto.claude import lines
from hitherto.claude.chain import Link, is_spoken, same_writer


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
        return [block.id for block in self.blocks if block.type == "tool_use" and block.id is not None]

    @property
    def answers(self) -> list[str]:
        """The ids of the calls that this message answers."""
        found = [block.tool_use_id for block in self.blocks if block.type == "tool_result"]
        return [call for call in found if call is not None]

    @property
    def is_result(self) -> bool:
        """Whether this is the result of a tool."""
        return any(block.type == "tool_result" for block in self.blocks)

    @property
    def blocks(self) -> list[_Block]:
        """The parts of the message."""
        return self.content if isinstance(self.content, list) else []


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
    beside = [place for place in places.values() if place not in on_way and is_spoken(entries[place])]
    if not beside:
        return way
    inserts = _Responses(entries, places, way, beside).left_beside()
    return [place for at in way for place in (at, *inserts.get(at, ()))]


class _Responses:
    """The model's responses, wherever their links are, and the results that are beside the way."""

    def __init__(
        self, entries: Sequence[Link], places: Mapping[str, int], way: Sequence[int], beside: Sequence[int]
    ) -> None:
        self._entries = entries
        self._places = places
        self._way = way
        self._taken = set(way)
        self._members: dict[str, list[int]] = {}
        # The response that a link is part of.
        self._response: dict[int, str] = {}
        # Who made a call; None if two responses claim it.
        self._owners: dict[str, int | None] = {}
        # The results beside the way, under every link they may belong to.
        self._results: dict[int, list[int]] = {}
        self._answers: dict[int, list[str]] = {}
        self._find_members()
        for place in beside:
            self._find_owners(place)
        self._concerned = {
            self._response[place] for place in (*beside, *self._results) if place in self._response
        }

    def _find_members(self) -> None:
        entries, response_of, owners = self._entries, self._response, self._owners
        for place in self._places.values():
            entry = entries[place]
            if entry.type != "assistant" or not (tools := tools_of(entry)).id:
                continue
            response_of[place] = tools.id
            self._members.setdefault(tools.id, []).append(place)
            for call in tools.calls:
                owner = owners.get(call, place)
                mine = owner is not None and response_of[owner] == tools.id
                owners[call] = place if mine else None

    def _find_owners(self, place: int) -> None:
        """Note a result under its parent, its source and the owners of its calls."""
        entry = self._entries[place]
        if entry.type != "user" or not entry.parent_uuid:
            return
        tools = tools_of(entry)
        if not tools.is_result:
            return
        answers = self._answers[place] = tools.answers
        claims = [self._owners.get(call) for call in answers]
        if entry.source_uuid is not None:
            claims.insert(0, self._places.get(entry.source_uuid))
        own = [at for at in claims if at is not None and same_writer(entry, self._entries[at])]
        parent = self._places.get(entry.parent_uuid)
        for at in dict.fromkeys([parent, *own] if parent is not None else own):
            self._results.setdefault(at, []).append(place)

    def left_beside(self) -> dict[int, list[int]]:
        """What to insert, by the place to insert it behind."""
        response_of = self._response
        last = {response_of[place]: place for place in self._way if place in response_of}
        inserts = {}
        for response, anchor in last.items():
            found = self._left_by(response) if response in self._concerned else []
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
        answered = self._answered | {call for place in own for call in self._answers[place]}
        found = []
        for place in strays:
            calls = self._answers[place]
            if any(call not in answered and self._owners.get(call) in members for call in calls):
                answered.update(calls)
                found.append(place)
        return found

    @cached_property
    def _answered(self) -> set[str]:
        """The calls that are answered on the way."""
        spoken = [self._entries[place] for place in self._way if is_spoken(self._entries[place])]
        return {call for entry in spoken for call in tools_of(entry).answers}

    def _stamp(self, place: int) -> str:
        return self._entries[place].timestamp or ""
