"""What the agent understands and answers is documented."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hitherto import errors
from hitherto.acp.agent.connection import AUTH_REQUIRED
from hitherto.acp.agent.methods import NOTIFICATIONS, REQUESTS
from hitherto.acp.agent.slash_commands import COMMANDS
from hitherto.rpc import errors as failures
from hitherto.rpc.errors import CODES
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "acp.md").read_text()
KEYS = re.compile(r'"((?:hitherto)/\w+)"')


def tree(error: type[errors.HithertoError]) -> Iterator[type[errors.HithertoError]]:
    yield error
    for child in error.__subclasses__():
        yield from tree(child)


def test_every_error_has_a_number_and_a_row() -> None:
    assert set(CODES) == {error.code for error in tree(errors.HithertoError)}
    rows = dict(re.findall(r"^\| (-\d+) \|([^|]*)\|", PAGE, flags=re.MULTILINE))
    for code, number in CODES.items():
        assert f"`{code}`" in rows[str(number)], code
    plain = {value for name, value in vars(failures).items() if name.isupper() and isinstance(value, int)}
    assert set(map(int, rows)) == {AUTH_REQUIRED} | plain | set(CODES.values())


def test_every_method_is_documented() -> None:
    for method in (*REQUESTS, *NOTIFICATIONS):
        assert f"`{method}`" in PAGE, method


def test_every_command_is_documented() -> None:
    rows = re.findall(r"^\| `/(\w+)", PAGE, flags=re.MULTILINE)
    assert rows == list(COMMANDS)


def test_every_key_of_meta_is_documented() -> None:
    folder = ROOT / "src" / "hitherto" / "acp"
    keys = {key for path in folder.rglob("*.py") for key in KEYS.findall(path.read_text())}
    assert len(keys) > 8
    for key in keys:
        assert f"`{key}`" in PAGE or f'"{key}"' in PAGE, key
