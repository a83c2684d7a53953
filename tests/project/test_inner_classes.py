"""Inner classes of other packages that ours extend: they can change in any release, so every change of what we
depend on is noticed.

If a test here fails after an upgrade, read what changed in the method that it names, see whether ours still fits, and
write down the new digest. Then raise the upper bound in `pyproject.toml`.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import inspect
import re
import tomllib
from types import ModuleType
from typing import NamedTuple

import psycopg
import psycopg.waiting
import pytest
import uvicorn
from packaging.requirements import Requirement
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from hitherto.gateway import serve
from hitherto.gateway.transport import protocols
from hitherto.stores.postgres.connection import EagerConnection
from supply.pins import ROOT, normal, pins


class Hook(NamedTuple):
    """What one of our classes needs of another package."""

    ours: type
    base: type | ModuleType
    digests: dict[str, str]
    """Of each method that ours replaces, or depends on."""
    attributes: tuple[str, ...] = ()
    """Which ours reads or sets, and the base has."""


HOOKS = [
    Hook(
        protocols.HttpLine,
        HttpToolsProtocol,
        {
            "_should_upgrade": "8fcad1ab8e09",
            "_unsupported_upgrade_warning": "55bbd2762b18",
            "connection_lost": "c91a4c9bf2e2",
            "connection_made": "6efb565ff3d3",
            "data_received": "010a7ae59a5d",
            "on_body": "dba9c32aeba3",
            "on_header": "65d62c044f61",
            "on_headers_complete": "1ea8589acfad",
            "on_message_begin": "96d377fdc7c2",
            "on_message_complete": "1fbad42dc31f",
            "pause_writing": "17a8fd215d96",
            "resume_writing": "7844bbaa8cce",
        },
        ("client", "loop", "transport", "url"),
    ),
    Hook(
        protocols.SocketLine,
        WebSocketsSansIOProtocol,
        {
            "connection_lost": "dd116afc4d80",
            "connection_made": "f533ec93747c",
            "data_received": "c89d394077d8",
            "handle_ping": "41bcf345d372",
            "handle_pong": "b20c68cc7e4f",
            "handle_text": "6ae523180cf0",
            "keepalive_timeout": "8e1ceb6ec446",
            "pause_writing": "4830f7e0d81f",
            "receive": "1dc0e7153900",
            "resume_writing": "ef79384e5fff",
            "run_asgi": "662375aa38d9",
            "send": "d4919ed760ce",
            "send_receive_event_to_app": "a2b10de91477",
            "shutdown": "e8ace796ada6",
            "stop_keepalive": "bbb91b997b37",
        },
        (
            "close_sent",
            "conn",
            "curr_msg_data_type",
            "disconnected",
            "frames",
            "handshake_complete",
            "loop",
            "queue",
            "read_paused",
            "scope",
            "transport",
            "writable",
        ),
    ),
    Hook(
        serve._Server,
        uvicorn.Server,
        {"capture_signals": "e1bbcd4770d1", "startup": "2aa1d70a244b"},
        ("server_state", "should_exit"),
    ),
    Hook(EagerConnection, psycopg.AsyncConnection, {"wait": "39ca6ebda05d"}, ("pgconn",)),
    Hook(EagerConnection, psycopg.waiting, {"wait_async": "0ddecc182c13"}),
]
BOUNDED = ("uvicorn", "psycopg")


def by_name(hook: Hook) -> str:
    return f"{hook.ours.__name__}-{hook.base.__name__}"


def told(hook: Hook, what: str) -> str:
    """Which class changed, and who depends on it."""
    module = hook.base.__module__ if isinstance(hook.base, type) else hook.base.__name__
    package = module.split(".")[0]
    where = f"{module}.{hook.base.__name__}" if isinstance(hook.base, type) else module
    version = importlib.metadata.version(package)
    return f"{package} {version}: {where}: {what}; {hook.ours.__module__}.{hook.ours.__name__} depends on it"


@pytest.mark.parametrize("hook", HOOKS, ids=by_name)
def test_every_method_that_ours_replaces_is_the_one_that_we_have_read(hook: Hook) -> None:
    changed = []
    for name, digest in hook.digests.items():
        method = getattr(hook.base, name, None)
        if method is None:
            changed.append(told(hook, f"{name} is gone"))
            continue
        found = hashlib.sha256(inspect.getsource(method).encode()).hexdigest()[:12]
        if found != digest:
            changed.append(told(hook, f"{name} changed (its digest is {found})"))
    assert not changed, "\n".join(changed)


@pytest.mark.parametrize("hook", HOOKS, ids=by_name)
def test_every_attribute_that_ours_uses_is_one_of_the_base(hook: Hook) -> None:
    methods = inspect.getmembers(hook.base, inspect.isfunction)
    source = "".join(inspect.getsource(method) for _name, method in methods)
    gone = [
        told(hook, f"no attribute {name}")
        for name in hook.attributes
        if not re.search(rf"\bself\.{name}\b", source)
    ]
    assert not gone, "\n".join(gone)


@pytest.mark.parametrize("hook", [each for each in HOOKS if isinstance(each.base, type)], ids=by_name)
def test_every_method_that_ours_replaces_is_listed(hook: Hook) -> None:
    replaced = {name for name in vars(hook.ours) if inspect.isfunction(getattr(hook.base, name, None))}
    assert replaced - {"__init__"} <= set(hook.digests)


def test_packages_with_such_classes_have_an_upper_bound_and_every_pin_is_within_its_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = (each for extra in project["optional-dependencies"].values() for each in extra)
    pinned = {pin.name: pin.version for pin in pins(ROOT / "requirements.txt")}
    asked = [Requirement(each) for each in (*project["dependencies"], *extras)]
    outside = [
        str(each)
        for each in asked
        if each.name != "hitherto" and not each.specifier.contains(pinned[normal(each.name)])
    ]
    assert outside == []
    bounded = {each.name for each in asked if any(part.operator == "<" for part in each.specifier)}
    assert bounded >= set(BOUNDED)
