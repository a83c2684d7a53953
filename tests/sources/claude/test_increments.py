from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hitherto.model import Entry, encode, plain_text
from hitherto.sources.claude.branches import BranchRead
from hitherto.sources.claude.graph import SIGHT
from hitherto.sources.claude.parse import Compacted, Parsed, State, load_state, parse
from tests.claude.transcripts import Babble, Writer, fill
from tests.sources.claude.random_transcripts import SESSION, random_transcript, writer


class Reader:
    """Reads a growing transcript as a sync does: only what is new, unless that needs the whole."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.compactions: list[Compacted] = []
        self.branches: tuple[BranchRead, ...] = ()
        self.state: State | None = None
        self.rebuilt = 0

    def read(self, data: bytes) -> Parsed:
        got = parse(data[self.state.offset if self.state else 0 :], self.state)
        if got.change == "rebuild":
            self.rebuilt += 1
            got = parse(data)
        if got.change == "whole":
            self.entries, self.compactions, self.branches = [], [], ()
        self.entries = [got.amended if got.amended and got.amended.id == e.id else e for e in self.entries]
        self.entries += got.entries
        self.compactions += got.compactions
        self.branches = got.branches or self.branches
        # As it is between two runs: kept as bytes.
        self.state = load_state(encode(got.state))
        assert self.state == got.state
        return got


@settings(max_examples=300)
@given(
    seed=st.integers(0, 2**32),
    steps=st.integers(1, 60),
    cuts=st.lists(st.floats(0, 1), min_size=1, max_size=6).map(sorted),
)
def test_reading_in_pieces_gives_what_reading_at_once_gives(seed: int, steps: int, cuts: list[float]) -> None:
    data = random_transcript(seed, steps)
    reader = Reader()
    for cut in [*(int(cut * len(data)) for cut in cuts), len(data)]:
        got = reader.read(data[:cut])
        whole = parse(data[:cut])
        assert reader.entries == list(whole.entries)
        assert reader.compactions == list(whole.compactions)
        assert reader.branches == whole.branches
        assert got.info == whole.info
        assert got.total == whole.total == len(reader.entries)
        # How far back the window reaches may differ, what was seen may not.
        assert got.state.window.seen == whole.state.window.seen
        assert replace(got.state, window=whole.state.window) == whole.state


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 60))
def test_the_same_bytes_give_the_same_bytes_and_ids_that_are_unique(seed: int, steps: int) -> None:
    data = random_transcript(seed, steps)
    first, again = parse(data), parse(bytes(bytearray(data)))
    assert encode(first) == encode(again)
    ids = [entry.id for entries in (first.entries, *(b.entries for b in first.branches)) for entry in entries]
    assert len(ids) == len(set(ids))


def test_an_ordinary_session_read_line_by_line_is_never_read_twice() -> None:
    rng = random.Random(11)
    data = fill(Writer(SESSION, rng=rng), 300_000, Babble(rng))
    reader = Reader()
    offset = 0
    for line in data.splitlines(keepends=True):
        offset += len(line)
        reader.read(data[:offset])
    assert reader.rebuilt == 0
    assert reader.entries == list(parse(data).entries)


def test_an_answer_that_goes_on_amends_its_entry() -> None:
    made = writer()
    made.user("Compare the two files")
    made.call("Read", {"file_path": "/a"}, message_id="msg_1")
    first = parse(made.data())
    made.call("Read", {"file_path": "/b"}, message_id="msg_1")
    got = parse(made.data()[first.state.offset :], first.state)
    assert got.change == "extends"
    assert got.entries == ()
    assert got.amended is not None
    assert got.amended.id == first.entries[1].id
    assert len(got.amended.parts) == 2
    assert got.info.usage == first.info.usage


def test_going_back_to_an_earlier_message_needs_the_whole_file() -> None:
    made = writer()
    first = made.user("Write a poem")
    made.say("Roses")
    made.user("Another one")
    before = parse(made.data())
    made.user("A sonnet instead", parentUuid=first["uuid"])
    got = parse(made.data()[before.state.offset :], before.state)
    assert (got.change, got.entries, got.state) == ("rebuild", (), before.state)
    assert len(parse(made.data()).entries) == 2


class Growing:
    """A transcript that is read whenever it has grown, and must then be what it is when read at once."""

    def __init__(self) -> None:
        self.made = writer()
        self._reader = Reader()

    def read(self) -> list[str]:
        data = self.made.data()
        self._reader.read(data)
        assert self._reader.entries == list(parse(data).entries)
        return [plain_text(entry) for entry in self._reader.entries]


def test_a_leaf_above_a_newer_branch_leads_to_that_branch() -> None:
    growing = Growing()
    made = growing.made
    first = made.user("one")
    second = made.say("two")
    made.user("newer branch", parentUuid=first["uuid"])
    made.last_prompt(leaf=second["uuid"])
    assert growing.read() == ["one", "two"]
    made.last_prompt(leaf=first["uuid"])
    assert growing.read() == ["one", "newer branch"]


def test_a_leaf_beside_the_course_brings_what_hung_from_it_out_of_sight() -> None:
    growing = Growing()
    made = growing.made
    first = made.user("one")
    beside = made.link("system", subtype="informational", content="beside")
    made.user("under it", isMeta=True)
    made.link("system", subtype="informational", content="newer", parentUuid=first["uuid"])
    assert growing.read() == ["one", "beside", "newer"]
    made.last_prompt(leaf=beside["uuid"])
    assert growing.read() == ["one", "beside", "under it", "newer"]


def test_what_follows_a_message_that_a_compaction_moved_is_found() -> None:
    growing = Growing()
    made = growing.made
    made.user("one")
    block, call = made.call("Read", {"file_path": "/a"}, message_id="msg_1")
    summary = made.compact(keep=[block["uuid"]], summary="sum")
    made.last_prompt(leaf=summary["uuid"])
    growing.read()
    late = made.result(call, "late", parentUuid=block["uuid"])
    growing.read()
    made.user("two", parentUuid=late["uuid"])
    assert growing.read()[-1] == "two"


def test_a_leaf_that_a_compaction_moved_still_holds() -> None:
    growing = Growing()
    made = growing.made
    made.user("one")
    first, call = made.call("Read", {"file_path": "/a"}, message_id="msg_1")
    second, _ = made.call("Read", {"file_path": "/b"}, message_id="msg_1")
    made.last = first["uuid"]
    made.compact(keep=[second["uuid"]])
    made.last_prompt(leaf=second["uuid"])
    growing.read()
    result = made.result(call, "A", parentUuid=first["uuid"])
    growing.read()
    made.user("of another branch", parentUuid=result["uuid"])
    assert "of another branch" not in growing.read()


def test_a_lost_parent_is_looked_for_out_of_sight_too() -> None:
    growing = Growing()
    made = growing.made
    first = made.user("one")
    made.user("aside", isMeta=True)
    made.link("system", subtype="informational", content="newer", parentUuid=first["uuid"])
    assert growing.read() == ["one", "newer"]
    made.user("two", parentUuid="never written")
    assert growing.read() == ["one", "aside", "newer", "two"]


def test_an_answer_that_goes_on_after_much_else_stays_one_answer() -> None:
    growing = Growing()
    made = growing.made
    made.user("one")
    _, call = made.call("Read", {"file_path": "/a"}, message_id="msg_1")
    for _ in range(SIGHT + 5):
        made.link("progress", data={})
    growing.read()
    last = made.last
    made.call("Read", {"file_path": "/b"}, message_id="msg_1")
    made.result(call, "A", parentUuid=last)
    growing.read()
    assert len(parse(made.data()).entries[1].parts) == 2


def test_a_line_that_is_not_complete_waits_for_its_rest() -> None:
    made = writer()
    made.user("One")
    made.say("Two")
    data = made.data()
    got = parse(data[:-10])
    assert len(got.entries) == 1
    assert got.unread > 0
    rest = parse(data[got.state.offset :], got.state)
    assert (rest.change, len(rest.entries), rest.unread) == ("extends", 1, 0)


def test_a_whole_record_without_a_line_end_is_read_at_once_and_only_once() -> None:
    made = writer()
    made.user("One")
    made.say("Two")
    data = made.data()
    got = parse(data[:-1])
    assert len(got.entries) == 2
    assert parse(data[got.state.offset :], got.state).entries == ()


def test_a_record_that_turns_out_to_be_spliced_needs_the_whole_file() -> None:
    made = writer()
    made.user("One")
    got = parse(made.data()[:-1])
    assert parse(b'{"torn', got.state).change == "rebuild"
    assert parse(b"  \n", got.state).change == "extends"


def test_what_is_kept_between_two_runs_stays_small() -> None:
    rng = random.Random(3)
    data = fill(Writer(SESSION, rng=rng), 2_000_000, Babble(rng))
    assert len(encode(parse(data).state)) < len(data) / 100


def test_a_state_of_another_version_is_not_gone_on_from() -> None:
    assert load_state(b'{"version":0}') is None
    assert load_state(b"[]") is None
    assert load_state(b"{") is None
    assert parse(b"", State(version=0)).change == "rebuild"
