"""What some rows need of the machine: whether it is there, how to get it, and whether the machine lets us use it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from torture.trial import disks, network

PATIENCE = 300
IMAGE_BYTES = 8 << 20


def _granted() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Need:
    """Something a machine may lack."""

    name: str
    there: Callable[[], bool]
    packages: tuple[str, ...] = ()
    """The Debian packages that bring it, if root may install them."""
    refused: Callable[[], str] = _granted
    """What the machine says when it is really used; nothing if it can be. Asked when all needs of a row are there."""


def lacking(needs: Sequence[Need]) -> list[str]:
    """What of these the machine lacks or refuses, and why."""
    absent = [need.name for need in needs if not need.there()]
    return absent or [f"{need.name} ({answer})" for need in needs if (answer := need.refused())]


def supplied(needs: Sequence[Need], say: Callable[[str], None]) -> list[str]:
    """What is still lacking after an attempt to install it; each package is named before it is installed.

    Nothing is installed if something else is lacking that no package brings.
    """
    absent = [need for need in needs if not need.there()]
    if is_root() and all(need.packages for need in absent):
        for package in (package for need in absent for package in need.packages):
            _install(package, say)
    return lacking(needs)


def _install(package: str, say: Callable[[str], None]) -> None:
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", package]
    say(f"installs a package that it needs: {' '.join(command)}")
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        say(f"{package} could not be installed: {error}")
        return
    if ran.returncode != 0:
        say(f"{package} could not be installed: {ran.stderr.strip()[-1000:]}")


def is_root() -> bool:
    """Whether this process may install packages; in a container it may be root and still not be allowed to mount."""
    return os.geteuid() == 0


def _once(attempt: Callable[[Path], None]) -> Callable[[], str]:
    """What the machine says to this attempt, which is made once, in a folder of its own; nothing if it succeeds."""

    @functools.cache
    def answer() -> str:
        with tempfile.TemporaryDirectory(prefix="torture") as folder:
            try:
                attempt(Path(folder))
            except (OSError, RuntimeError) as error:
                return str(error).partition("\n")[0]
        return ""

    return answer


def _mounts(folder: Path) -> None:
    with disks.memory(folder / "disk", "size=64k"):
        pass


def _mounts_a_file(folder: Path) -> None:
    with (
        disks.image(folder / "image", IMAGE_BYTES) as image,
        disks.mounted("ext4", str(image), folder / "disk", "loop"),
    ):
        pass


def _makes_networks(_folder: Path) -> None:
    with network.machine(1) as (under, _links):
        disks.run(*under, "true")
    disks.run("unshare", "--pid", "--fork", "--mount-proc", "true")


def programs(*names: str, packages: tuple[str, ...]) -> Need:
    """Programs on the path."""
    spelled = ", ".join(f"`{name}`" for name in names)
    there = functools.partial(_on_path, names)
    return Need(f"the program{'s' if len(names) > 1 else ''} {spelled}", there, packages)


def usable(need: Need, use: str, attempt: Callable[[Path], None]) -> Need:
    """The same, where it is also found that the machine lets it be used for this."""
    return replace(need, name=f"{need.name} and {use}", refused=_once(attempt))


def _on_path(names: Sequence[str]) -> bool:
    return all(shutil.which(name) for name in names)


ROOT = usable(Need("root", is_root), "the right to mount", _mounts)
FAULTY_CALLS = programs("fiu-run", packages=("fiu-utils",))
FALSE_CLOCK = programs("faketime", packages=("faketime",))
NAMESPACES = programs("ip", "setpriv", "unshare", packages=("iproute2", "util-linux"))
PACKET_RULES = usable(programs("nft", packages=("nftables",)), "the right to make networks", _makes_networks)
LOOP_DISKS = usable(programs("mkfs.ext4", packages=("e2fsprogs",)), "loop devices", _mounts_a_file)
