"""Whatever path is given, nothing outside of the roots is read, written or told about."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from hitherto.engines.tools.roots import PATH_CHARS, RESTARTS, OutsideRoots, Roots
from tests.support.privileges import without_privileges
from tests.support.waits import line_of

SECRET = b"outside"
PLAIN = b"inside"
MOST = 1_000
SWAPS = 200


class Place(NamedTuple):
    """A root with links of all kinds, and what lies beside it."""

    root: Path
    beside: Path
    roots: Roots


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root, beside = tmp_path / "root", tmp_path / "beside"
    (root / "in" / "deep").mkdir(parents=True)
    (beside / "in").mkdir(parents=True)
    for folder, data in (
        (root, PLAIN),
        (root / "in", PLAIN),
        (root / "in" / "deep", PLAIN),
        (beside, SECRET),
    ):
        (folder / "file").write_bytes(data)
    links = {
        "out": str(beside),
        "out_up": "../beside",
        "out_file": str(beside / "file"),
        "out_nested": "in/hop",
        "here": ".",
        "up": "..",
        "deep": "in/deep",
        "whole": str(root / "in"),
        "to_file": "in/deep/file",
        "loop": "loop",
        "gone": "in/new",
        "out_gone": str(beside / "new"),
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    (root / "in" / "hop").symlink_to("../../beside")
    return Place(root, beside, Roots((str(root),)))


ESCAPES = (
    "../beside/file",
    "in/../../beside/file",
    "./../beside/file",
    "in/deep/../../../beside/file",
    "../root/../beside/file",
    "{beside}/file",
    "//{beside}/file",
    "{root}/../beside/file",
    "{root}/in/../../beside/file",
    "{root}side/file",
    "/etc/passwd",
    "/",
    "..",
    "/proc/self/root/etc/passwd",
    "/proc/self/cwd/file",
    "/dev/stdin",
    "~",
    "~/file",
    "out/file",
    "out",
    "out/",
    "out_up/file",
    "out_file",
    "out_nested/file",
    "in/hop/file",
    "up/beside/file",
    "here/up/beside/file",
    "whole/../../beside/file",
    "out/../beside/file",
)


def _spelled(path: str, place: Place) -> str:
    return path.format(root=place.root, beside=place.beside)


@pytest.mark.parametrize("path", ESCAPES)
def test_a_path_that_leads_out_is_refused_for_reading_and_for_writing(path: str, place: Place) -> None:
    before = _tree(place.beside)
    with pytest.raises(OutsideRoots):
        place.roots.read(_spelled(path, place), MOST)
    with pytest.raises(OutsideRoots):
        place.roots.replace(_spelled(path, place), b"changed")
    with pytest.raises(OutsideRoots):
        place.roots.resolve(_spelled(path, place))
    assert _tree(place.beside) == before


@pytest.mark.parametrize("path", ["../beside/{}", "{beside}/{}", "out/{}", "out_up/in/{}", "up/{}"])
def test_what_is_there_outside_and_what_is_not_are_refused_in_the_same_words(path: str, place: Place) -> None:
    told = set[str]()
    for name in ("file", "nothing", "in/../file"):
        with pytest.raises(OutsideRoots) as refusal:
            place.roots.read(path.replace("{}", name).format(beside=place.beside), MOST)
        told.add(str(refusal.value))
    assert len(told) == 1


def test_a_dangling_link_that_leads_out_makes_nothing_there(place: Place) -> None:
    with pytest.raises(OutsideRoots):
        place.roots.replace("out_gone", b"changed")
    assert not (place.beside / "new").exists()


@pytest.mark.parametrize(
    "path",
    [
        "file",
        "./file",
        "in//deep/./file",
        "in/../file",
        "in/deep/../../file",
        "../root/file",
        "{root}/file",
        "//{root}/file",
        "{root}/in/../file",
        "here/here/file",
        "deep/file",
        "deep/../file",
        "whole/file",
        "to_file",
        "up/root/file",
        "up/root/whole/deep/file",
    ],
)
def test_a_path_that_stays_inside_works_however_it_is_written(path: str, place: Place) -> None:
    assert place.roots.read(_spelled(path, place), MOST) == PLAIN


def test_every_short_path_reads_what_the_system_would_or_is_refused(place: Place) -> None:
    """The system follows links wherever they lead; what it finds inside is what is read, and nothing else is."""
    names = ("..", ".", "in", "deep", "hop", "here", "up", "out", "out_up", "whole", "root", "beside")
    seen = {"inside": 0, "outside": 0}
    for steps in itertools.chain.from_iterable(
        itertools.product(names, repeat=length) for length in range(4)
    ):
        path = "/".join((*steps, "file"))
        try:
            real = os.path.realpath(place.root / path, strict=True)
        except OSError:
            with pytest.raises(OSError, match=r"outside|No such file"):
                place.roots.read(path, MOST)
            continue
        if real.startswith(f"{place.root}/"):
            seen["inside"] += 1
            assert place.roots.read(path, MOST) == PLAIN, path
            assert place.roots.resolve(path) == real, path
        else:
            seen["outside"] += 1
            with pytest.raises(OutsideRoots):
                place.roots.read(path, MOST)
    assert min(seen.values()) > 50


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("", ValueError),
        ("a\0b", ValueError),
        ("a" * (PATH_CHARS + 1), ValueError),
        ("in/\ud800", ValueError),
        ("a" * 300, OSError),
        ("loop", OSError),
        ("file/", NotADirectoryError),
        ("file/.", NotADirectoryError),
        ("file/more", NotADirectoryError),
        ("to_file/", NotADirectoryError),
        ("in", IsADirectoryError),
        ("in/", IsADirectoryError),
        (".", IsADirectoryError),
        ("deep", IsADirectoryError),
        ("nothing", FileNotFoundError),
        ("nothing/file", FileNotFoundError),
        ("nothing/../file", FileNotFoundError),
        ("gone", FileNotFoundError),
        ("~file", FileNotFoundError),
    ],
)
def test_a_path_to_no_file_says_why(path: str, error: type[Exception], place: Place) -> None:
    with pytest.raises(error) as refusal:
        place.roots.read(path, MOST)
    assert not isinstance(refusal.value, OutsideRoots)


def test_the_longest_path_is_walked_with_few_descriptors(place: Place) -> None:
    path = "./" * ((PATH_CHARS - 4) // 2) + "file"
    assert place.roots.read(path, MOST) == PLAIN
    ups = "in/../" * RESTARTS + "file"
    with pytest.raises(OSError, match="Too many levels"):
        place.roots.read(ups, MOST)
    assert place.roots.read("in/../" * (RESTARTS - 1) + "file", MOST) == PLAIN


def test_a_name_that_is_no_utf_8_is_a_name(place: Place) -> None:
    name = os.fsdecode(b"caf\xe9")
    place.roots.replace(name, b"new")
    assert (place.root / name).read_bytes() == b"new"
    assert place.roots.read(name, MOST) == b"new"


def test_no_path_leaves_a_descriptor_open(place: Place) -> None:
    before = len(os.listdir("/dev/fd"))
    for path in (
        *ESCAPES,
        "file",
        "in/deep/file",
        "loop",
        "nothing/file",
        "in/file/x",
        "to_file/",
        "\ud800/x",
    ):
        try:
            place.roots.read(_spelled(path, place), MOST)
        except (OSError, ValueError):
            continue
    assert len(os.listdir("/dev/fd")) == before


# Several roots


def test_each_root_may_be_reached_by_any_way(place: Place) -> None:
    both = Roots((str(place.root), str(place.beside)))
    for path in ("../beside/file", "out/file", "out_up/file", "in/hop/file", f"{place.beside}/file"):
        assert both.read(path, MOST) == SECRET
    assert both.read(f"{place.beside}/../root/file", MOST) == PLAIN
    with pytest.raises(OutsideRoots):
        both.read("up/elsewhere", MOST)


def test_a_root_that_is_itself_a_link_is_known_under_both_names(place: Place, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("root")
    roots = Roots((str(link),))
    for path in ("file", f"{link}/file", f"{place.root}/file", "whole/file"):
        assert roots.read(path, MOST) == PLAIN
    assert roots.resolve("deep/file") == f"{link}/in/deep/file"
    with pytest.raises(OutsideRoots):
        roots.read("../beside/file", MOST)


def test_a_root_is_what_it_was_when_the_session_was_opened(place: Place, tmp_path: Path) -> None:
    place.root.rename(tmp_path / "moved")
    place.root.symlink_to(place.beside)
    with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
        place.roots.read("file", MOST)


def test_a_root_inside_another_that_becomes_a_link_leads_nowhere_else(place: Place) -> None:
    roots = Roots((str(place.root / "in"), str(place.root)))
    assert roots.read("file", MOST) == PLAIN
    (place.root / "in").rename(place.root / "moved")
    (place.root / "in").symlink_to(place.beside)
    with pytest.raises(OutsideRoots):
        roots.read("file", MOST)


def test_the_whole_disk_as_a_root_takes_every_path(place: Place) -> None:
    whole = Roots(("/",))
    assert whole.read(f"{place.root}/out/file", MOST) == SECRET
    assert whole.resolve("/") == "/"
    assert whole.resolve("/..") == "/"


# Swapped in between


CALLS = ("open", "readlink", "stat", "mkdir", "rename")
SWAPPER = """
import os, shutil, sys
spot, other, aside = sys.argv[1:]

def move(a, b):
    while True:
        try:
            return os.rename(a, b)
        except OSError:
            # Whoever writes has made a folder meanwhile, where there was nothing.
            shutil.rmtree(b, ignore_errors=True)

print(flush=True)
while True:
    for a, b in ((spot, aside), (other, spot), (spot, other), (aside, spot)):
        move(a, b)
"""


def _folder(path: Path, _: Place) -> None:
    path.mkdir()
    (path / "file").write_bytes(PLAIN)


def _file(path: Path, _: Place) -> None:
    path.write_bytes(PLAIN)


def _link_to_folder(path: Path, place: Place) -> None:
    path.symlink_to(place.beside)


def _link_to_file(path: Path, place: Place) -> None:
    path.symlink_to(place.beside / "file")


def _fifo(path: Path, _: Place) -> None:
    os.mkfifo(path)


class Swap(NamedTuple):
    """What is at `swapped`, what takes its place, and which path is used meanwhile."""

    first: Callable[[Path, Place], None]
    second: Callable[[Path, Place], None]
    path: str


SWAPPED = (
    Swap(_folder, _link_to_folder, "swapped/file"),
    Swap(_folder, _link_to_folder, "swapped/in/file"),
    Swap(_folder, _link_to_folder, "swapped/new/file"),
    Swap(_folder, _link_to_folder, "swapped/../swapped/file"),
    Swap(_file, _link_to_file, "swapped"),
    Swap(_file, _fifo, "swapped"),
)


BOTH_WAYS = [swap for one in SWAPPED for swap in (one, one._replace(first=one.second, second=one.first))]


def _make(swap: Swap, place: Place) -> None:
    """The two things, new, each in its place."""
    for name, make in (("swapped", swap.first), ("other", swap.second)):
        path = place.root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        make(path, place)


def _exchange(place: Place) -> None:
    spot, other, aside = (place.root / name for name in ("swapped", "other", "aside"))
    for a, b in ((spot, aside), (other, spot), (aside, other)):
        a.rename(b)


def _read(place: Place, path: str) -> bytes | None:
    with suppress(OSError):
        return place.roots.read(path, MOST)
    return None


def _write(place: Place, path: str) -> None:
    with suppress(OSError):
        place.roots.replace(path, b"changed")


@pytest.mark.parametrize("use", [_read, _write])
@pytest.mark.parametrize("swap", BOTH_WAYS)
def test_a_swap_before_any_step_gets_nothing_from_outside_and_nothing_out(
    use: Callable[[Place, str], bytes | None], swap: Swap, place: Place
) -> None:
    """Every call that touches the disk is once the moment at which the two are exchanged."""
    before = _tree(place.beside)
    for moment in itertools.count():
        _make(swap, place)
        with _at_call(moment, lambda: _exchange(place)) as done:
            assert use(place, swap.path) in (None, PLAIN), moment
        assert _tree(place.beside) == before, moment
        if not done:
            break
    assert moment > 1


@contextmanager
def _at_call(moment: int, act: Callable[[], None]) -> Iterator[list[bool]]:
    """Act right before the so manieth call to the system; what is yielded is empty until then."""
    done, calls = list[bool](), itertools.count()

    def first(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            if next(calls) == moment and not done:
                done.append(True)
                act()
            return real(*args, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, first(getattr(os, name)))
        yield done


@pytest.mark.parametrize("swap", BOTH_WAYS)
def test_swapping_all_the_time_gets_nothing_from_outside_and_nothing_out(swap: Swap, place: Place) -> None:
    before = _tree(place.beside)
    _make(swap, place)
    paths = [str(place.root / name) for name in ("swapped", "other", "aside")]
    with subprocess.Popen((sys.executable, "-c", SWAPPER, *paths), stdout=subprocess.PIPE) as swapper:
        line_of(swapper, "the first swap")
        try:
            for _ in range(SWAPS):
                assert _read(place, swap.path) in (None, PLAIN, b"changed")
                _write(place, swap.path)
            assert swapper.poll() is None
        finally:
            swapper.kill()
    assert _tree(place.beside) == before


# Writing


def test_a_file_is_made_with_the_folders_it_needs(place: Place) -> None:
    place.roots.replace("new/folders/file", b"text")
    assert (place.root / "new" / "folders" / "file").read_bytes() == b"text"
    assert os.listdir(place.root / "new" / "folders") == ["file"]


def test_writing_through_a_link_that_stays_inside_changes_what_it_leads_to(place: Place) -> None:
    place.roots.replace("to_file", b"text")
    place.roots.replace("gone", b"more")
    assert (place.root / "in" / "deep" / "file").read_bytes() == b"text"
    assert (place.root / "in" / "new").read_bytes() == b"more"
    assert (place.root / "to_file").is_symlink()


def test_the_mode_of_a_file_is_kept_and_a_new_one_follows_the_umask(place: Place) -> None:
    (place.root / "file").chmod(0o4751)
    place.roots.replace("file", b"text")
    # What runs as somebody else is not kept, as the system does when a file is written.
    assert stat.S_IMODE((place.root / "file").stat().st_mode) == 0o751
    umask = os.umask(0o027)
    try:
        place.roots.replace("fresh", b"text")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((place.root / "fresh").stat().st_mode) == 0o640


def test_the_other_name_of_a_hard_link_keeps_what_it_had(place: Place) -> None:
    os.link(place.beside / "file", place.root / "linked")
    assert place.roots.read("linked", MOST) == SECRET
    place.roots.replace("linked", b"changed")
    assert (place.beside / "file").read_bytes() == SECRET
    assert (place.root / "linked").read_bytes() == b"changed"


def test_a_file_that_is_read_only_is_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(PLAIN)
    file.chmod(0o444)
    with without_privileges(), pytest.raises(PermissionError):
        Roots((str(tmp_path),)).replace("file", b"changed")
    assert file.read_bytes() == PLAIN


def test_a_write_that_fails_leaves_nothing_behind(place: Place) -> None:
    before = _tree(place.root)
    for path in ("in", "in/", ".", "file/more"):
        with pytest.raises(OSError, match="directory"):
            place.roots.replace(path, b"changed")
    assert _tree(place.root) == before


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
def test_what_is_neither_file_nor_folder_is_not_opened(kind: str, place: Place) -> None:
    target = place.root / "special"
    roots = place.roots
    if kind == "fifo":
        os.mkfifo(target)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(target))
    else:
        roots = Roots(("/dev",))
        target = Path("/dev/zero")
    with pytest.raises(OSError, match="neither a file nor a folder"):
        roots.read(str(target), MOST)
    with pytest.raises(OSError, match="neither a file nor a folder"):
        roots.replace(str(target), b"changed")


def test_a_file_of_one_byte_more_than_may_be_read_is_refused(place: Place) -> None:
    assert place.roots.read("file", len(PLAIN)) == PLAIN
    with pytest.raises(OSError, match="larger than"):
        place.roots.read("file", len(PLAIN) - 1)


def test_the_place_of_something_that_is_not_there_yet_is_known(place: Place) -> None:
    assert place.roots.resolve("new/folders/file") == f"{place.root}/new/folders/file"
    assert place.roots.resolve("deep/new") == f"{place.root}/in/deep/new"
    assert not (place.root / "new").exists()
    with pytest.raises(FileNotFoundError):
        place.roots.resolve("new/../../beside/file")


def _tree(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in folder.rglob("*")
    }
