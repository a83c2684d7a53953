"""Clients of other makers, from npm, in a folder that is kept between runs and never committed."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent.parent.parent / ".interop"
MODULES = FOLDER / "node_modules"
MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
NODE_PACKAGE = f"node-{sys.platform}-{MACHINES[platform.machine().lower()]}"
PACKAGES = ["@agentclientprotocol/sdk@2.4.0", "acpx@0.19.1", f"{NODE_PACKAGE}@24", "@openai/codex@0.166.0"]

NODE = MODULES / NODE_PACKAGE / "bin" / "node"
ACPX = MODULES / "acpx" / "dist" / "cli.js"
SDK = MODULES / "@agentclientprotocol" / "sdk"
CODEX = MODULES / "@openai" / "codex" / "bin" / "codex.js"


def install() -> None:
    """Fetch them, unless they are there; nothing of theirs is run for it."""
    done = FOLDER / "installed.json"
    if done.exists() and json.loads(done.read_text()) == PACKAGES:
        return
    npm = shutil.which("npm")
    assert npm, "these tests need npm"
    FOLDER.mkdir(exist_ok=True)
    options = [
        "--prefix",
        str(FOLDER),
        "--ignore-scripts",
        "--no-save",
        "--no-package-lock",
        "--no-audit",
        "--no-fund",
    ]
    # With a project of its own, npm does not look for one further up.
    (FOLDER / "package.json").write_text('{"private": true}')
    subprocess.run([npm, "install", *options, *PACKAGES], check=True, timeout=600, stdin=subprocess.DEVNULL)
    done.write_text(json.dumps(PACKAGES))
