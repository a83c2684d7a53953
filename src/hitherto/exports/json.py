"""`json`: the messages in a form for other programs, with the lossless lines under an extra key.

The document is one line. `hitherto.lines` holds the lossless lines as they are, so it is imported to an equal session.
"""

from __future__ import annotations

from hitherto.exports.format import Writer
from hitherto.exports.messages import message
from hitherto.model import Entry, encode


class JsonDocument(Writer):
    """One object, written from its beginning to its end."""

    shows = keeps = True
    _messages = _lines = 0

    def begin(self) -> str:
        """Whose messages these are."""
        session = self.about.session
        key = encode(session.key or session.id).decode()
        return f'{{"session_key":{key},"agent_id":{encode(session.agent_id).decode()},"messages":['

    def entry(self, entry: Entry, *, mark: bool) -> str:  # noqa: ARG002 - a summary is a message like another
        """One message."""
        comma = "," if self._messages else ""
        self._messages += 1
        return comma + encode(message(entry)).decode()

    def line(self, line: bytes) -> bytes:
        """A lossless line, as it is."""
        before = b"," if self._lines else self._about()
        self._lines += 1
        return before + line

    def end(self, replaced: object) -> str:  # noqa: ARG002 - the last of the lines says it
        """The brackets that are still open."""
        return "]}}\n"

    def _about(self) -> bytes:
        """The end of the messages and what is known of them; then the lines begin."""
        metadata = {
            "created_at": self.about.session.created_at,
            "message_count": self.about.message_count,
            "token_count": self.about.token_count,
        }
        metadata_json = encode({"metadata": metadata, "exported_at": self.about.exported_at})
        return b"]," + metadata_json[1:-1] + b',"hitherto":{"lines":['


class JsonLines(Writer):
    """One line after the other."""

    keeps = True

    def line(self, line: bytes) -> bytes:
        """The line with its end."""
        return line + b"\n"
