"""Clients of other makers, from npm, in a folder that is kept between runs and never committed."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from tests.waits import LIMIT

FOLDER = Path(__file__).parent.parent.parent / ".interop"
MODULES = FOLDER / "node_modules"
MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
HERE = f"{sys.platform}-{MACHINES[platform.machine().lower()]}"
NODE_PACKAGE = f"node-{HERE}"
PACKAGES = [
    "@agentclientprotocol/sdk@2.4.0",
    "acpx@0.19.1",
    f"{NODE_PACKAGE}@24",
    "@openai/codex@0.166.0",
    f"opencode-{HERE}@1.18.33",
    f"@aaif/goose-binary-{HERE}@1.52.0",
    "@google/gemini-cli@0.61.0",
]

NODE = MODULES / NODE_PACKAGE / "bin" / "node"
ACPX = MODULES / "acpx" / "dist" / "cli.js"
SDK = MODULES / "@agentclientprotocol" / "sdk"
CODEX = MODULES / "@openai" / "codex" / "bin" / "codex.js"
OPENCODE = MODULES / f"opencode-{HERE}" / "bin" / "opencode"
GOOSE = MODULES / "@aaif" / f"goose-binary-{HERE}" / "bin" / "goose"
GEMINI = MODULES / "@google" / "gemini-cli" / "bundle" / "gemini.js"


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
    subprocess.run(
        [npm, "install", *options, *PACKAGES], check=True, timeout=10 * LIMIT, stdin=subprocess.DEVNULL
    )
    done.write_text(json.dumps(PACKAGES))
