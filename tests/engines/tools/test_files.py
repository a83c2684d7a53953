"""Reading, writing and editing files."""

from __future__ import annotations

import asyncio
import base64
import os
from pathlib import Path

import pytest

from hitherto.engines.tools.limits import (
    DIFF_BYTES,
    IMAGE_BYTES,
    LINE_CHARS,
    READ_BYTES,
    READ_LINES,
    TEXT_BYTES,
)
from hitherto.model import Image
from tests.engines.tools.bench import Bench, words

PNG = b"\x89PNG\r\n\x1a\n"
IMAGES = {
    "image/png": PNG + b"rest",
    "image/jpeg": b"\xff\xd8\xff\xe0rest",
    "image/gif": b"GIF89arest",
    "image/webp": b"RIFF\x0a\0\0\0WEBPrest",
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def _write(bench: Bench, data: bytes | str, name: str = "file") -> None:
    (bench.folder / name).write_bytes(data.encode() if isinstance(data, str) else data)


# Reading


@pytest.mark.parametrize("text", ["one\ntwo\n", "one\ntwo", "one\r\ntwo\r\n", "\ufeffone\ntwo\n"])
async def test_lines_are_read_with_their_numbers(text: str, bench: Bench) -> None:
    _write(bench, text)
    assert await bench.told("read_file", path="file") == "     1\tone\n     2\ttwo"


async def test_only_line_ends_end_a_line(bench: Bench) -> None:
    _write(bench, "a\x0cb\u2028c\rd\n\n")
    assert await bench.told("read_file", path="file") == "     1\ta\x0cb\u2028c\rd\n     2\t"


async def test_an_empty_file_says_so(bench: Bench) -> None:
    _write(bench, "")
    assert await bench.told("read_file", path="file") == "(the file is empty)"


async def test_a_part_says_where_it_is_and_how_to_go_on(bench: Bench) -> None:
    _write(bench, "".join(f"line {number}\n" for number in range(1, 11)))
    assert await bench.told("read_file", path="file", offset=4, limit=2) == (
        "     4\tline 4\n     5\tline 5\n(lines 4 to 5 of 10; continue with offset 6)"
    )
    assert await bench.told("read_file", path="file", offset="10") == "    10\tline 10"
    assert await bench.refused("read_file", path="file", offset=11) == (
        "file: there is no line 11: the file has 10 lines"
    )
    for wrong in ({"offset": 0}, {"limit": 0}, {"limit": READ_LINES + 1}, {"offset": "x"}):
        await bench.refused("read_file", path="file", **wrong)


async def test_a_line_more_than_is_read_at_once_waits_for_the_next_read(bench: Bench) -> None:
    _write(bench, "x\n" * READ_LINES)
    assert (await bench.told("read_file", path="file")).endswith(f"  {READ_LINES}\tx")
    _write(bench, "x\n" * (READ_LINES + 1))
    told = await bench.told("read_file", path="file")
    assert told.endswith(
        f"(lines 1 to {READ_LINES} of {READ_LINES + 1}; continue with offset {READ_LINES + 1})"
    )


async def test_long_lines_are_cut_and_many_of_them_end_the_read(bench: Bench) -> None:
    _write(bench, "x" * LINE_CHARS + "\n" + "y" * (LINE_CHARS + 1) + "\n")
    first, second = (await bench.told("read_file", path="file")).split("\n")
    assert first == "     1\t" + "x" * LINE_CHARS
    assert second == "     2\t" + "y" * LINE_CHARS + "… (1 more characters)"
    _write(bench, ("ü" * LINE_CHARS + "\n") * 100)
    told = await bench.told("read_file", path="file")
    assert READ_BYTES - 2 * LINE_CHARS - 200 < len(told.encode()) <= READ_BYTES + 100
    assert "continue with offset" in told


@pytest.mark.parametrize(("mime_type", "data"), IMAGES.items())
async def test_an_image_is_shown_whatever_it_is_called(mime_type: str, data: bytes, bench: Bench) -> None:
    _write(bench, data, "notes.txt")
    ran = await bench.call("read_file", path="notes.txt")
    assert ran.content == (Image(mime_type=mime_type, data=base64.b64encode(data).decode()),)
    assert not ran.is_error


async def test_an_image_of_a_byte_more_than_may_be_shown_is_not(bench: Bench) -> None:
    _write(bench, PNG.ljust(IMAGE_BYTES, b"\0"))
    assert isinstance((await bench.call("read_file", path="file")).content[0], Image)
    _write(bench, PNG.ljust(IMAGE_BYTES + 1, b"\0"))
    assert "not UTF-8 text" in await bench.refused("read_file", path="file")


@pytest.mark.parametrize("data", [b"\0\1\2", b"\xff\xfeh\0i\0", b"caf\xe9", b"text\0text"])
async def test_what_is_no_text_is_politely_refused(data: bytes, bench: Bench) -> None:
    _write(bench, data)
    assert f"not UTF-8 text ({len(data)} bytes)" in await bench.refused("read_file", path="file")


async def test_a_file_of_a_byte_more_than_may_be_read_is_refused(bench: Bench) -> None:
    _write(bench, "x" * TEXT_BYTES)
    assert (await bench.told("read_file", path="file")).startswith("     1\txxx")
    _write(bench, "x" * (TEXT_BYTES + 1))
    assert await bench.refused("read_file", path="file") == f"file: larger than {TEXT_BYTES} bytes"


@pytest.mark.parametrize(
    ("path", "reason"),
    [("nothing", "No such file"), ("folder", "Is a directory"), ("pipe", "neither a file nor a folder")],
)
async def test_what_cannot_be_read_says_why(path: str, reason: str, bench: Bench) -> None:
    (bench.folder / "folder").mkdir()
    os.mkfifo(bench.folder / "pipe")
    assert reason in await bench.refused("read_file", path=path)
    assert reason in await bench.refused("edit_file", path=path, old="a", new="b")
    if path != "nothing":
        assert reason in await bench.refused("write_file", path=path, content="a")


# Writing


async def test_a_file_is_made_and_replaced_and_the_change_is_given(bench: Bench) -> None:
    place = f"{bench.folder}/new/file"
    made = await bench.call("write_file", path="new/file", content="one\r\n")
    assert words(made) == f"Made {place}."
    assert made.output == {"diff": {"path": place, "oldText": None, "newText": "one\r\n"}}
    replaced = await bench.call("write_file", path=place, content="")
    assert words(replaced) == f"Replaced {place}."
    assert replaced.output == {"diff": {"path": place, "oldText": "one\r\n", "newText": ""}}
    assert (bench.folder / "new" / "file").read_bytes() == b""


async def test_what_was_no_text_is_replaced_without_a_diff(bench: Bench) -> None:
    _write(bench, b"\xff\0")
    ran = await bench.call("write_file", path="file", content="text")
    assert words(ran).startswith("Replaced")
    assert ran.output is None
    assert (bench.folder / "file").read_bytes() == b"text"


async def test_a_change_of_a_byte_more_than_a_diff_may_have_is_made_without_one(bench: Bench) -> None:
    _write(bench, "x" * 100)
    ran = await bench.call("write_file", path="file", content="y" * (DIFF_BYTES - 100))
    assert ran.output is not None
    ran = await bench.call("write_file", path="file", content="y" * 101)
    assert ran.output is None
    assert (bench.folder / "file").read_bytes() == b"y" * 101


async def test_a_text_of_a_byte_more_than_may_be_written_is_refused(bench: Bench) -> None:
    await bench.told("write_file", path="file", content="x" * TEXT_BYTES)
    await bench.refused("write_file", path="file", content="x" * (TEXT_BYTES + 1))
    await bench.refused("edit_file", path="file", old="x" * TEXT_BYTES, new="y" * (TEXT_BYTES + 1))
    assert (bench.folder / "file").stat().st_size == TEXT_BYTES


async def test_a_text_that_cannot_be_written_as_utf_8_is_refused(bench: Bench) -> None:
    await bench.refused("write_file", path="file", content="\ud800")
    assert os.listdir(bench.folder) == []


# Editing


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("one\ntwo\n", "two", "three", "one\nthree\n"),
        ("one\ntwo", "two", "three", "one\nthree"),
        ("one\ntwo", "one\ntwo", "", ""),
        ("one\r\ntwo\r\n", "one\ntwo\n", "1\n2\n3\n", "1\r\n2\r\n3\r\n"),
        ("one\r\ntwo\r\n", "two", "2\n3", "one\r\n2\r\n3\r\n"),
        ("one\r\ntwo\r\n", "one\r\n", "1\r\n", "1\r\ntwo\r\n"),
        ("one\ntwo\n", "one\r\ntwo", "1\r\n2", "1\n2\n"),
        ("a\r\nb\r\nc\nd\n", "a\nb", "1\n2", "1\r\n2\r\nc\nd\n"),
        ("a\r\nb\r\nc\nd\n", "c\nd", "3\n4", "a\r\nb\r\n3\n4\n"),
        ("\ufeffone\r\ntwo", "one", "1", "\ufeff1\r\ntwo"),
        ("\ufeffone", "one", "1", "\ufeff1"),
        ("a.*b", ".*", "\\1", "a\\1b"),
        ("ünï", "ï", "\U0001f600", "ün\U0001f600"),
    ],
)
async def test_an_edit_changes_the_piece_and_nothing_else(
    before: str, old: str, new: str, after: str, bench: Bench
) -> None:
    _write(bench, before)
    ran = await bench.call("edit_file", path="file", old=old, new=new)
    assert not ran.is_error, ran
    assert (bench.folder / "file").read_bytes() == after.encode()
    assert ran.output == {"diff": {"path": f"{bench.folder}/file", "oldText": before, "newText": after}}


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("", "x", "is empty"),
        ("one", "one", "are the same"),
        ("One", "x", "is not in the file"),
        ("one ", "x", "is not in the file"),
        ("o", "x", "occurs 2 times"),
        ("     1\tone", "x", "is not in the file"),
    ],
)
async def test_an_edit_that_is_not_clear_is_refused_and_says_why(
    old: str, new: str, reason: str, bench: Bench
) -> None:
    _write(bench, "one\ntwo\n")
    assert reason in await bench.refused("edit_file", path="file", old=old, new=new)
    assert (bench.folder / "file").read_bytes() == b"one\ntwo\n"


async def test_every_place_is_edited_if_that_is_asked_for(bench: Bench) -> None:
    _write(bench, "one\r\none\r\n")
    told = await bench.told("edit_file", path="file", old="one\n", new="1\n", replace_all=True)
    assert told.endswith(", in 2 places.")
    assert (bench.folder / "file").read_bytes() == b"1\r\n1\r\n"


async def test_edits_asked_for_at_the_same_time_are_all_made(bench: Bench) -> None:
    _write(bench, "".join(f"<{number}>\n" for number in range(20)))
    calls = (bench.told("edit_file", path="file", old=f"<{n}>", new=f"[{n}]") for n in range(20))
    await asyncio.gather(*calls)
    assert (bench.folder / "file").read_text() == "".join(f"[{number}]\n" for number in range(20))


async def test_a_program_stays_one_after_an_edit(bench: Bench) -> None:
    _write(bench, "#!/bin/sh\n")
    (bench.folder / "file").chmod(0o755)
    await bench.told("edit_file", path="file", old="sh", new="bash")
    assert (bench.folder / "file").stat().st_mode & 0o777 == 0o755
    assert os.listdir(bench.folder) == ["file"]
