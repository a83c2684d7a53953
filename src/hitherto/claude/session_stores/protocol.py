"""What a session store is: the protocol of `claude-agent-sdk`, and the values that it exchanges."""

# Annotations are read here as they are: which keys a value must have is seen in them.

from typing import TYPE_CHECKING, Any, Literal, NotRequired, Protocol, Required, TypedDict


class SessionKey(TypedDict):
    """A transcript: of a session, or with a `subpath` (`subagents/agent-ID`) of a subagent."""

    project_key: str
    session_id: str
    subpath: NotRequired[str]


class SessionListSubkeysKey(TypedDict):
    """A session, to ask for its subagents."""

    project_key: str
    session_id: str


class SessionStoreEntry(TypedDict, total=False):
    """A record of a transcript; what else it has is passed through."""

    type: Required[str]
    uuid: str
    timestamp: str


class SessionStoreListEntry(TypedDict):
    """A session in a list, and when it was last appended to, in ms."""

    session_id: str
    mtime: int


class SessionSummaryEntry(TypedDict):
    """What `fold_session_summary` gathers of a session; a store keeps `data` as it is, and stamps `mtime` itself."""

    session_id: str
    mtime: int
    data: dict[str, Any]


SessionStoreFlushMode = Literal["batched", "eager"]
"""When the SDK hands records to a store: once a turn, or as they come."""


class SessionStore(Protocol):
    """A place outside of Claude Code's folder to which the SDK mirrors transcripts.

    A store needs `append` and `load`. It may have the other methods; one that it leaves out is one that it cannot do.
    """

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add records to a transcript, in order. A record with a `uuid` that is there already is not added again."""

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All records of a transcript in the order they were added; None if there is no such transcript."""

    # Only for type checkers: the SDK asks whether a store has these methods, and would take ours for the store's own.
    if TYPE_CHECKING:

        async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
            """The sessions of a project, in any order."""
            raise NotImplementedError

        async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
            """What lists show of the sessions of a project, without loading them."""
            raise NotImplementedError

        async def delete(self, key: SessionKey) -> None:
            """Delete a transcript, and with that of a session those of its subagents."""
            raise NotImplementedError

        async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
            """The subpaths of a session's further transcripts."""
            raise NotImplementedError


def implements(store: SessionStore, method: str) -> bool:
    """Whether a store has a method of its own: what it inherits from a protocol only raises."""
    found = getattr(type(store), method, None) or getattr(store, method, None)
    return found is not None and not _is_of_protocol(type(store), method)


def _is_of_protocol(kind: type, method: str) -> bool:
    home = next((each for each in kind.__mro__ if method in vars(each)), None)
    return bool(getattr(home, "_is_protocol", False))
