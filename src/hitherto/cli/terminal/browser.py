"""Opening a page in the browser of whoever sits at the terminal."""

from __future__ import annotations

import html
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

WAY = "open.html"
PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={link}"><title>Hitherto</title>'


def browser_command(environ: Mapping[str, str] = os.environ) -> list[str] | None:
    """The command that opens an address: of `BROWSER`, or of the desktop; None if there is no desktop."""
    if named := environ.get("BROWSER", "").split(os.pathsep)[0]:
        return shlex.split(named)
    if sys.platform == "darwin":
        return ["open"]
    if environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"):
        found = shutil.which("xdg-open", path=environ.get("PATH"))
        return None if found is None else [found]
    return None


def open_link(link: str, folder: Path) -> bool:
    """Open a link in the browser, without waiting for it. False if there is none.

    A link that signs in is not shown to other users of the machine, who see the arguments of every process: the browser is
    given a file in `folder`, which only this user can read, and that leads to it. Browsers in a snap read no such file and
    get the link itself.
    """
    command = browser_command()
    if command is None:
        return False
    target = link if (Path.home() / "snap").is_dir() else _way_to(link, folder)
    words = [word.replace("%s", target) for word in command]
    nowhere = subprocess.DEVNULL
    try:
        opener = subprocess.Popen(  # noqa: S603 - the command of this user, without a shell
            words if words != command else [*command, target],
            stdin=nowhere,
            stdout=nowhere,
            stderr=nowhere,
            start_new_session=True,
        )
    except OSError:
        return False
    threading.Thread(target=opener.wait, daemon=True).start()
    return True


def _way_to(link: str, folder: Path) -> str:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    way, fresh = folder / WAY, folder / f"{WAY}.{os.getpid()}"
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(PAGE.format(link=html.escape(link)))
    fresh.replace(way)
    return way.as_uri()
