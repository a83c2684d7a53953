"""`python -m supply.dist`: builds the wheel and the sdist, and tries them as their users get them.

Both are built twice, from the tracked files alone, and must be the same to the byte. Then each set of extras is
installed from the wheel, and the base from the sdist, in environments of their own, and the command is run there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import NoReturn

from supply.pins import ROOT, pins

DIST = ROOT / "dist"
UV = Path(sys.executable).with_name("uv")
SECONDS = 600
EXTRAS = ("", "[server]", "[all]")
NEEDED = (
    "hitherto/py.typed",
    "hitherto/exports/page.css",
    "hitherto/gateway/page/templates/",
    "hitherto/gateway/page/static/",
    "hitherto/stores/sqlite/sql/",
    "hitherto/stores/postgres/sql/",
)
MISSING = {"": {"serve": "[server]", "mcp": "[models]"}}
"""Which commands say what adds them, where they are not there."""


def main() -> int:
    """Build, check, install, run; 1 at the first thing that is not as it must be, which is named."""
    with tempfile.TemporaryDirectory(prefix="hitherto-dist-") as folder:
        try:
            wheel, sdist = _built(Path(folder))
            _check_contents(wheel, sdist)
            _run([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist])
            _try_installed(Path(folder), wheel, sdist)
        except (_Wrong, subprocess.SubprocessError, OSError) as error:
            sys.stderr.write(f"make dist: {error}\n")
            return 1
    return 0


class _Wrong(Exception):
    """Something is not as it must be."""


def _wrong(what: str) -> NoReturn:
    raise _Wrong(what)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist in `dist/`, built twice with the same bytes."""
    builds = [_build(folder / name) for name in ("first", "second")]
    first, second = [{path.name: _digest(path) for path in build.iterdir()} for build in builds]
    if first != second:
        _wrong(f"two builds differ: {sorted(first.items() ^ second.items())}")
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.copytree(builds[0], DIST)
    for name, digest in sorted(first.items()):
        _say(f"built dist/{name}  sha256 {digest}")
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def _build(folder: Path) -> Path:
    """One build, from the files of the last commit and at its time: nothing that only lies here gets in."""
    tracked = subprocess.run(
        ["git", "archive", "--format=tar", "HEAD"], cwd=ROOT, check=True, capture_output=True, timeout=SECONDS
    ).stdout
    with tarfile.open(fileobj=BytesIO(tracked)) as archive:
        archive.extractall(folder / "source", filter="data")
    where: list[str | Path] = ["--outdir", folder / "out", folder / "source"]
    _run(
        [sys.executable, "-m", "build", "--no-isolation", *where],
        {"SOURCE_DATE_EPOCH": _output(["git", "log", "-1", "--format=%ct"]).strip()},
    )
    return folder / "out"


def _check_contents(wheel: Path, sdist: Path) -> None:
    held = zipfile.ZipFile(wheel).namelist()
    for needed in NEEDED:
        if not any(name.startswith(needed) for name in held):
            _wrong(f"{wheel.name} lacks {needed}")
    with tarfile.open(sdist) as archive:
        packed = [name.partition("/")[2] for name in archive.getnames()]
    for needed in ("README.md", "LICENSE", "pyproject.toml", *(f"src/{name}" for name in NEEDED)):
        if not any(name.startswith(needed) for name in packed):
            _wrong(f"{sdist.name} lacks {needed}")
    strays = [name for name in (*held, *packed) if "__pycache__" in name or name.endswith((".pyc", ".db"))]
    strays += [name for name in held if not name.startswith(("hitherto/", "hitherto-"))]
    if strays:
        _wrong(f"what does not belong there: {strays[:5]}")
    _say(f"{wheel.name}: {len(held)} files; {sdist.name}: {len(packed)} files")


def _try_installed(folder: Path, wheel: Path, sdist: Path) -> None:
    limits = folder / "constraints.txt"
    limits.write_text("".join(f"{pin.name}=={pin.version}\n" for pin in pins(ROOT / "requirements.txt")))
    for extras in EXTRAS:
        _try(_installed(folder / f"env{extras}", f"hitherto{extras} @ {wheel.as_uri()}", limits), extras)
    _try(_installed(folder / "env-sdist", f"hitherto @ {sdist.as_uri()}", limits), "")


def _installed(place: Path, what: str, limits: Path) -> Path:
    """The folder of programs of a fresh environment with this in it."""
    _say(f"installing {what.partition(' @ ')[0]} from {what.rpartition('/')[2]}")
    _run([UV, "venv", "--quiet", "--python", sys.executable, place])
    _run(
        [UV, "pip", "install", "--quiet", "--python", place / "bin" / "python", "--constraint", limits, what]
    )
    return place / "bin"


def _try(programs: Path, extras: str) -> None:
    home = programs.parent / "home"
    home.mkdir()
    environ = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}
    hitherto = programs / "hitherto"
    for arguments in (["--version"], ["sync"], ["list"]):
        _say(
            f"  hitherto {arguments[0]}: {_output([hitherto, *arguments], environ).strip() or 'nothing there'}"
        )
    missing = MISSING.get(extras, {})
    for command, extra in missing.items():
        _check_advice(hitherto, command, extra, environ)
    if "serve" not in missing:
        _serve(hitherto, environ)


def _check_advice(hitherto: Path, command: str, extra: str, environ: Mapping[str, str]) -> None:
    """A command whose packages are not there says which command adds them, and ends in order."""
    done = subprocess.run(
        [hitherto, command], env=environ, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    advice = f"pip install 'hitherto{extra}'"
    if done.returncode != 2 or advice not in done.stderr or "Traceback" in done.stderr:
        _wrong(f"`hitherto {command}` without {extra} does not advise {advice}: {done.stderr.strip()[-300:]}")
    _say(f"  hitherto {command}: {done.stderr.strip()}")


def _serve(hitherto: Path, environ: Mapping[str, str]) -> None:
    with _serving(hitherto, environ) as address:
        _get(f"{address}/health")
        page = _get(f"{address}/").decode()
        if (style := re.search(r'href="(/static/[^"]+\.css)"', page)) is None:
            _wrong("the page links no stylesheet")
        _get(address + style[1])
    _say("  hitherto serve: health, page and style are served")


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - our own, on loopback
        body: bytes = answer.read()
        if answer.status != 200 or not body:
            _wrong(f"{url} is answered with {answer.status} and {len(body)} bytes")
        return body


@contextlib.contextmanager
def _serving(hitherto: Path, environ: Mapping[str, str]) -> Iterator[str]:
    process = subprocess.Popen(
        [hitherto, "serve", "--port", "0", "--json"], env=environ, stdout=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        yield json.loads(line)["address"]
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    if code != 0:
        _wrong(f"hitherto serve ended with {code}")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(command: Sequence[str | Path], environ: Mapping[str, str] = {}) -> None:
    done = subprocess.run(
        command, env={**os.environ, **environ}, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    if done.returncode != 0:
        _wrong(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def _output(command: Sequence[str | Path], environ: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command, env=environ, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    if done.returncode != 0:
        _wrong(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
