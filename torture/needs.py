"""What some rows need of the machine: each need says whether it is there and how to get it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

PATIENCE = 300


@dataclass(frozen=True, slots=True)
class Need:
    """Something a machine may lack."""

    name: str
    there: Callable[[], bool]
    package: str = ""
    """The Debian package that brings it, if root may install it."""

    def met(self) -> bool:
        """Whether it is there, after an attempt to install it."""
        if not self.there() and self.package and is_root():
            command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", self.package]
            subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)
        return self.there()


def is_root() -> bool:
    """Whether this process may mount, make namespaces and install packages."""
    return os.geteuid() == 0


def program(name: str, package: str) -> Need:
    """A program on the path."""
    return Need(f"the program `{name}`", lambda: shutil.which(name) is not None, package)


ROOT = Need("root", is_root)
FAULTY_CALLS = program("fiu-run", "fiu-utils")
FALSE_CLOCK = program("faketime", "faketime")
PACKET_RULES = program("nft", "nftables")
NAMESPACES = program("ip", "iproute2")
LOOP_DISKS = program("mkfs.ext4", "e2fsprogs")
