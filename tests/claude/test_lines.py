"""Intact records, whatever surrounds them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitherto.claude import lines
from hitherto.claude.lines import Damage, read_blocks, read_records

RECORDS = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "tag", "x"])},
    optional={
        "text": st.text(max_size=40),
        "more": st.lists(st.dictionaries(st.text(max_size=3), st.integers())),
    },
)
NOISE = st.sampled_from(
    [b"", b" \r", b"garbage", b'{"type":"torn","a":[{"b":', b"\0\0\0", b"[1,2]", b"}{", b"\xff"]
)


@given(st.lists(st.tuples(RECORDS, NOISE)))
def test_whole_records_come_out_whole(pieces: list[tuple[dict[str, object], bytes]]) -> None:
    data = b"".join(
        json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n" + noise + b"\n"
        for record, noise in pieces
    )
    found, _ = read_records(data)
    assert [json.loads(record.decode("utf-8", "surrogatepass")) for record in found] == [
        record for record, _ in pieces
    ]


@given(st.lists(RECORDS, min_size=1, max_size=5), st.integers(0, 500))
def test_a_record_behind_a_torn_one_is_found(records: list[dict[str, object]], cut: int) -> None:
    torn = json.dumps({"type": "user", "text": ["x", {"y": "z"}] * 30})[: cut + 1].encode()
    data = torn + b"".join(json.dumps(record).encode() + b"\n" for record in records)
    found, damage = read_records(data)
    assert [json.loads(record) for record in found[-len(records) :]] == records
    assert damage


def test_undamaged_lines_are_unharmed() -> None:
    assert read_records(b"") == ([], Damage())
    assert read_records(b'\n{"a":1}\r\n\n{"b":"\xc3\xa9"}') == ([b'{"a":1}\r', b'{"b":"\xc3\xa9"}'], Damage())


def test_damage_adds_up() -> None:
    assert Damage(spliced=1) + Damage(spliced=2, nul_runs=1) == Damage(spliced=3, nul_runs=1)
    assert not Damage()
    assert Damage(bad_utf8=1)


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_blocks_are_whole_lines_at_their_offsets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(lines, "BLOCK", block)
    monkeypatch.setattr(lines, "_NOTHING", bytes(block))
    data = b"one\n\n" + b"x" * 300 + b"\n" + b"\0" * 200 + b"two\nlast"
    path = tmp_path / "file"
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = b""
        for offset, piece, size in read_blocks(descriptor):
            assert piece[:size].replace(b" ", b"\0").replace(b"\n", b"\0") == data[
                offset : offset + size
            ].replace(b"\n", b"\0")
            found += piece[:size] + b"|"
        assert found.replace(b"|", b"").split() == [b"one", b"x" * 300, b"two", b"last"]
        assert lines.count_nul_runs_of(descriptor) == 1
    finally:
        os.close(descriptor)
