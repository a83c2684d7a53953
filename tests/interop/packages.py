"""Clients of other makers, from npm, in a folder that is kept between runs and never committed.

`js/package.json` names them, each with its one version, and the lock beside it all that they need in turn, with hashes: what
is tested does not change from one day to the next. To take newer ones, change the versions there and say `make lock`.

python -m tests.interop.packages
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT

PINNED = Path(__file__).parent / "js"
FILES = ("package.json", "package-lock.json")
FOLDER = ROOT / ".interop"
MODULES = FOLDER / "node_modules"
MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
HERE = f"{sys.platform}-{MACHINES[platform.machine().lower()]}"
LOCKED = "linux-x64"
"""The machine whose programs are in the lock."""
SECONDS = 1800
"""Some hundred megabytes, over whatever line there is."""

NODE = MODULES / f"node-{HERE}" / "bin" / "node"
ACPX = MODULES / "acpx" / "dist" / "cli.js"
SDK = MODULES / "@agentclientprotocol" / "sdk"
CODEX = MODULES / "@openai" / "codex" / "bin" / "codex.js"
OPENCODE = MODULES / f"opencode-{HERE}" / "bin" / "opencode"
GOOSE = MODULES / "@aaif" / f"goose-binary-{HERE}" / "bin" / "goose"
GEMINI = MODULES / "@google" / "gemini-cli" / "bundle" / "gemini.js"


def install() -> None:
    """Fetch them, unless they are there; nothing of theirs is run for it."""
    done, pinned = FOLDER / "installed", "".join((PINNED / name).read_text() for name in FILES)
    if done.exists() and done.read_text() == pinned:
        return
    npm = shutil.which("npm")
    assert npm, "these tests need npm"
    FOLDER.mkdir(exist_ok=True)
    done.unlink(missing_ok=True)
    for name in FILES:
        shutil.copyfile(PINNED / name, FOLDER / name)
    # Not `ci`: that refuses a lock without the parts for other machines, of which a registry may not have all.
    options = ["--prefix", str(FOLDER), "--ignore-scripts", "--no-save", "--no-audit", "--no-fund"]
    command = [npm, "install", *options, *_for_this_machine()]
    subprocess.run(command, check=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    # Of what a machine may do without, npm does not say that it could not be fetched.
    missing = [str(each) for each in (NODE, ACPX, SDK, CODEX, OPENCODE, GOOSE, GEMINI) if not each.exists()]
    assert not missing, f"npm has not fetched {missing}"
    done.write_text(pinned)


def _for_this_machine() -> list[str]:
    """The programs that are made for each kind of machine apart, if they are not those in the lock: of the same versions."""
    wanted = json.loads((PINNED / "package.json").read_text())
    locked = json.loads((PINNED / "package-lock.json").read_text())["packages"][""]
    for kind in ("dependencies", "optionalDependencies"):
        assert wanted[kind] == locked[kind], "what is wanted from npm is not what is pinned: say `make lock`"
    made: dict[str, str] = {} if HERE == LOCKED else wanted["optionalDependencies"]
    return [f"{name.replace(LOCKED, HERE)}@{version}" for name, version in made.items()]


if __name__ == "__main__":
    install()
