"""The package as its users get it: what importing costs, what a wheel holds, that the examples run."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import flit_core.buildapi  # type: ignore[import-untyped]  # it ships no types
import pytest

import hitherto
from tests.support.paths import ROOT
from tests.support.waits import LIMIT


def run(code: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=False, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_package_imports_nothing_heavy(tmp_path: Path) -> None:
    loaded = run("import sys, hitherto; print(*sys.modules)", tmp_path).split()
    heavy = {
        "msgspec",
        "apsw",
        "asyncio",
        "click",
        "rich",
        "psycopg",
        "platformdirs",
        "prompt_toolkit",
        "zstandard",
    }
    assert heavy & set(loaded) == set()


def test_every_public_name_is_there() -> None:
    assert [name for name in hitherto.__all__ if getattr(hitherto, name, None) is None] == []
    with pytest.raises(AttributeError):
        hitherto.nonsense  # noqa: B018 - looking is the test


def test_the_local_store_needs_the_base_dependencies_only(tmp_path: Path) -> None:
    code = """
import sys
for name in ("psycopg", "psycopg_pool", "starlette", "pydantic_ai", "mcp"):
    sys.modules[name] = None
import asyncio, hitherto
async def main():
    async with hitherto.open("sqlite:store.db") as sessions:
        session = await sessions.create(hitherto.LOCAL)
        print((await sessions.get(hitherto.LOCAL, session.id)).revision)
    try:
        async with hitherto.open("postgresql://nowhere/x"):
            pass
    except hitherto.HithertoError as error:
        print(error.code, "hitherto[postgres]" in str(error))
asyncio.run(main())
"""
    assert run(code, tmp_path).split() == ["1", "store_unavailable", "True"]


def test_the_wheel_holds_types_and_schemas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    name = flit_core.buildapi.build_wheel(str(tmp_path))
    held = set(zipfile.ZipFile(tmp_path / name).namelist())
    schemas = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.sql")}
    assert schemas
    assert {"hitherto/py.typed", "hitherto/__main__.py", *schemas} <= held


def test_the_example_of_the_quickstart_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    lines = run(example, tmp_path).splitlines()
    assert lines[-1] == "True 2 2"
    assert lines[0].startswith("user ")
