"""What the `store.` methods are asked with in tests."""

from __future__ import annotations

import base64
from typing import Any

from hitherto.gateway.dispatch.connection import OpenConnection
from hitherto.gateway.dispatch.uploads import Uploads
from hitherto.model import Draft, Json, Text, encode
from hitherto.service import Imported


def exact(value: Any) -> str:
    """A value as it goes over the wire where nothing of it may be lost."""
    return base64.b64encode(encode(value)).decode()


def silent() -> OpenConnection:
    """A connection on which nobody listens."""

    async def tell(method: str, params: Json) -> None:
        pass

    return OpenConnection(tell, Uploads())


MINE = (Text(text="mine"),)
IMPORTED = Imported(id="claude:mine", source="claude", created_at=1, updated_at=2)
FOREIGN = base64.b64encode(b'{"messages": [{"role": "user", "content": "mine"}]}').decode()
PARAMS: dict[str, dict[str, Any]] = {
    "store.resolve": {"prefix": "0"},
    "store.search": {"text": "words"},
    "store.narrowed": {"text": "tag:words"},
    "store.entry": {"entry_id": "m"},
    "store.append": {"drafts": exact(Draft(role="user", parts=MINE))},
    "store.rename": {"title": "Mine"},
    "store.move": {"cwd": "/mine"},
    "store.trace": {"lines": exact([]), "repository": exact({})},
    "store.touched": {"file": "mine.py"},
    "store.edit_counts": {"session_ids": ["mine"]},
    "store.project_called": {"name": "mine"},
    "store.place": {"cwd": "/mine"},
    "store.place_folder": {"cwd": "/mine", "project": "mine"},
    "store.assign": {"project": "mine"},
    "store.rename_project": {"project": "mine", "name": "ours"},
    "store.branch": {"checkpoint": "c"},
    "store.rewind": {"to": "m"},
    "store.restore": {"checkpoint": "c"},
    "store.erase": {"entry_id": "m"},
    "store.already_there": {"lines": FOREIGN},
    "store.import_session": {"lines": FOREIGN, "trusted": True},
    "store.take_in": {"imported": exact(IMPORTED), "entries": exact([])},
    "store.mark_source": {"session_id": "claude:mine", "gone": True},
    "store.hand_over": {"name": "n", "data": ""},
    "store.await_change": {"after": "0"},
    "store.export_file": {"stream": "s", "raw": True},
    "store.window": {"choices": exact({})},
    "store.prompt": {"stream": "s", "parts": exact(MINE), "choices": exact({})},
}
"""What a method needs beside the session that it names."""
