"""Who is measured. A new contender is one file and one line in this table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A contender's name in the tables, where its class is, and the package whose version is reported."""

    name: str
    contender: str
    package: str
    # What one `import` of it takes is measured with this statement.
    imports: str
    lists: bool = False
    # Can be filled with many messages at once, so that a very long history is affordable.
    bulk: bool = False
    # Every append rewrites the whole conversation: it is given fewer messages.
    quadratic: bool = False
    note: str = ""


RAW = Entrant(
    name="raw apsw",
    contender="bench.contenders.raw:Raw",
    package="apsw",
    imports="import apsw",
    lists=True,
    bulk=True,
    note="the limit: WAL, `synchronous=FULL`, one bare row and one transaction per message",
)

HITHERTO = Entrant(
    name="Hitherto",
    contender="bench.contenders.hitherto:Hitherto",
    package="hitherto",
    imports="import hitherto",
    lists=True,
    bulk=True,
    note="WAL, `synchronous=FULL`; counters, change feed and search index up to date when the clock stops",
)

PEERS = (
    Entrant(
        name="openai-agents SQLiteSession",
        contender="bench.contenders.openai_agents:SQLiteSession",
        package="openai-agents",
        imports="from agents import SQLiteSession",
        bulk=True,
        note="WAL, FULL",
    ),
    Entrant(
        name="openai-agents SQLAlchemySession",
        contender="bench.contenders.openai_agents:SQLAlchemySession",
        package="openai-agents",
        imports="from agents.extensions.memory.sqlalchemy_session import SQLAlchemySession",
        bulk=True,
        note="aiosqlite; WAL, FULL",
    ),
    Entrant(
        name="google-adk SqliteSessionService",
        contender="bench.contenders.google_adk:SqliteSessionService",
        package="google-adk",
        imports="from google.adk.sessions.sqlite_session_service import SqliteSessionService",
        lists=True,
        note="rollback journal, FULL; a new connection for every call",
    ),
    Entrant(
        name="google-adk DatabaseSessionService",
        contender="bench.contenders.google_adk:DatabaseSessionService",
        package="google-adk",
        imports="from google.adk.sessions.database_session_service import DatabaseSessionService",
        lists=True,
        note="aiosqlite; rollback journal, FULL",
    ),
    Entrant(
        name="langgraph SqliteSaver",
        contender="bench.contenders.langgraph:SqliteSaver",
        package="langgraph-checkpoint-sqlite",
        imports="from langgraph.checkpoint.sqlite import SqliteSaver",
        quadratic=True,
        note="WAL, FULL; every checkpoint holds all messages, so it is given fewer",
    ),
    Entrant(
        name="agno SqliteDb",
        contender="bench.contenders.agno:SqliteDb",
        package="agno",
        imports="from agno.db.sqlite import SqliteDb",
        lists=True,
        note="WAL, FULL; one run per message, `upsert_run` alone",
    ),
)
