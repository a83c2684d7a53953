"""What is broken costs itself, and nothing else; and it is counted."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitherto.claude.lines import Damage
from hitherto.model import plain_text
from hitherto.sources.claude.parse import parse
from tests.claude.transcripts import Babble, Writer, compact, fill
from tests.sources.claude.random_transcripts import SESSION, writer
from tests.sources.claude.test_increments import Reader


def _lines() -> list[bytes]:
    """Six messages, said one after the other: 0 to 5."""
    made = writer()
    for number in range(0, 6, 2):
        made.user(f"message {number}")
        made.say(f"message {number + 1}")
    return [compact(record) for record in made.records]


def _torn(lines: list[bytes]) -> bytes:
    lines[2] = lines[2][:40] + b"\n"
    return b"".join(lines)


def _torn_tail(lines: list[bytes]) -> bytes:
    return b"".join(lines)[:-30]


def _no_line_end(lines: list[bytes]) -> bytes:
    return b"".join(lines)[:-1]


def _spliced(lines: list[bytes]) -> bytes:
    lines[2] = lines[2].rstrip(b"\n")
    return b"".join(lines)


def _torn_and_spliced(lines: list[bytes]) -> bytes:
    lines[2] = lines[2][:60]
    return b"".join(lines)


def _written_into_another(lines: list[bytes]) -> bytes:
    lines[2] = lines[2][:60] + lines[3].rstrip(b"\n") + lines[2][60:]
    del lines[3]
    return b"".join(lines)


def _nuls_instead(lines: list[bytes]) -> bytes:
    lines[2] = bytes(len(lines[2]))
    return b"".join(lines)


def _nuls_between(lines: list[bytes]) -> bytes:
    lines[2] = lines[2].rstrip(b"\n") + bytes(100)
    return b"".join(lines)


def _nuls_at_the_end(lines: list[bytes]) -> bytes:
    return b"".join(lines) + bytes(4096)


def _nuls_within(lines: list[bytes]) -> bytes:
    lines[2] = lines[2][:50] + bytes(8) + lines[2][58:]
    return b"".join(lines)


def _parent_of_another_type(lines: list[bytes]) -> bytes:
    record = json.loads(lines[-1])
    lines[-1] = compact({**record, "parentUuid": [[]]})
    return b"".join(lines)


def _byte_order_mark(lines: list[bytes]) -> bytes:
    return b"\xef\xbb\xbf" + b"".join(lines)


def _bad_utf8(lines: list[bytes]) -> bytes:
    lines[2] = lines[2].replace(b"message 2", b"message 2 \xff\xfe")
    return b"".join(lines)


def _not_json(lines: list[bytes]) -> bytes:
    lines[2] = b"Segmentation fault\n"
    return b"".join(lines)


def _other_values(lines: list[bytes]) -> bytes:
    return b'[1,2]\n"text"\n12\nnull\n' + b"".join(lines)


def _blank_lines(lines: list[bytes]) -> bytes:
    return b"\n \r\n" + b"\r\n\r\n".join(line.rstrip(b"\n") for line in lines) + b"\r\n"


def _too_deep(lines: list[bytes]) -> bytes:
    return b'{"type":"user","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n" + b"".join(lines)


DAMAGE: list[tuple[Callable[[list[bytes]], bytes], set[int], Damage]] = [
    (_torn, {2}, Damage(unreadable=1)),
    (_torn_tail, {5}, Damage()),
    (_no_line_end, set(), Damage()),
    (_spliced, set(), Damage(spliced=1)),
    (_torn_and_spliced, {2}, Damage(spliced=1)),
    (_written_into_another, {2, 3}, Damage(unreadable=1)),
    (_nuls_instead, {2}, Damage(nul_runs=1)),
    (_nuls_between, set(), Damage(nul_runs=1)),
    (_nuls_at_the_end, set(), Damage()),
    (_nuls_within, {2}, Damage(nul_runs=1, unreadable=2)),
    (_parent_of_another_type, set(), Damage()),
    (_byte_order_mark, set(), Damage(byte_order_marks=1)),
    (_bad_utf8, set(), Damage(bad_utf8=1)),
    (_not_json, {2}, Damage(unreadable=1)),
    (_other_values, set(), Damage(unreadable=4)),
    (_blank_lines, set(), Damage()),
    (_too_deep, set(), Damage(unreadable=1)),
]


@pytest.mark.parametrize(("harm", "lost", "damage"), DAMAGE, ids=lambda value: getattr(value, "__name__", ""))
def test_every_intact_record_is_read_and_the_damage_counted(
    harm: Callable[[list[bytes]], bytes], lost: set[int], damage: Damage
) -> None:
    got = parse(harm(_lines()))
    said = [plain_text(entry).split(" \ufffd")[0] for entry in got.entries]
    assert said == [f"message {number}" for number in range(6) if number not in lost]
    assert got.info.damage == damage


@settings(max_examples=200)
@given(
    harm=st.sampled_from(DAMAGE).map(lambda row: row[0]),
    cuts=st.lists(st.floats(0, 1), max_size=5).map(sorted),
)
def test_damage_is_the_same_read_in_pieces_or_at_once(
    harm: Callable[[list[bytes]], bytes], cuts: list[float]
) -> None:
    data = harm(_lines())
    reader = Reader()
    for cut in [*(int(cut * len(data)) for cut in cuts), len(data)]:
        got = reader.read(data[:cut])
        whole = parse(data[:cut])
        assert reader.entries == list(whole.entries)
        assert got.info == whole.info


@settings(max_examples=100)
@given(
    seed=st.integers(0, 1000),
    places=st.lists(st.floats(0, 1), min_size=1, max_size=8),
    noise=st.binary(max_size=9),
)
def test_noise_anywhere_costs_the_lines_it_hits_at_most(seed: int, places: list[float], noise: bytes) -> None:
    rng = random.Random(seed)
    data = fill(Writer(SESSION, rng=rng), 20_000, Babble(rng))
    whole = {entry.id for entry in parse(data).entries if entry.role != "assistant"}
    harmed, hit = data, 0
    for place in sorted((int(place * len(data)) for place in places), reverse=True):
        harmed = harmed[:place] + noise + harmed[place + len(noise) :]
        hit += 2 + noise.count(b"\n")
    found = {entry.id for entry in parse(harmed).entries}
    assert len(whole - found) <= hit


def test_what_is_read_is_not_changed() -> None:
    data = bytearray(_torn_and_spliced(_lines()))
    before = bytes(data)
    got = parse(before)
    state = got.state
    parse(before[state.offset :], state)
    assert before == bytes(data)
    assert state == got.state
