from __future__ import annotations

from collections.abc import Iterator

import psutil
import psycopg
import pytest

from tests.support.postgres_server import PostgresFailed, PostgresServer


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with PostgresServer(fast=False) as running:
        yield running


def ask(uri: str, question: str) -> object:
    with psycopg.connect(uri, autocommit=True) as connection:
        cursor = connection.execute(question.encode())
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def test_a_started_server_answers(server: PostgresServer) -> None:
    assert ask(server.uri(), "select 1") == 1


def test_the_server_listens_on_no_network_address(server: PostgresServer) -> None:
    assert ask(server.uri(), "show listen_addresses") == ""
    assert psutil.Process(server.pid).net_connections("inet") == []


def test_a_new_database_holds_what_its_template_holds(server: PostgresServer) -> None:
    template = server.create_database("pattern")
    ask(template, "create table kept (word text)")
    ask(template, "insert into kept values ('here')")

    copy = server.create_database("copy", template="pattern")
    assert ask(copy, "select word from kept") == "here"

    server.drop_database("copy")
    with pytest.raises(psycopg.OperationalError, match='"copy" does not exist'):
        ask(copy, "select 1")


def test_a_committed_row_outlives_a_killed_server(server: PostgresServer) -> None:
    ask(server.uri(), "create table kept (word text)")
    ask(server.uri(), "insert into kept values ('still here')")
    with psycopg.connect(server.uri()) as bystander:
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            bystander.execute("select 1")

    server.start()

    assert ask(server.uri(), "select word from kept") == "still here"


def test_a_stopped_server_starts_again(server: PostgresServer) -> None:
    server.stop()
    with pytest.raises(psycopg.OperationalError):
        ask(server.uri(), "select 1")
    server.start()
    assert ask(server.uri(), "select 1") == 1


def test_two_servers_stand_side_by_side(server: PostgresServer) -> None:
    with PostgresServer() as other:
        other.create_database("only_there")
        assert ask(server.uri(), "select count(*) from pg_database where datname = 'only_there'") == 0


def test_a_closed_server_leaves_neither_process_nor_folder() -> None:
    with PostgresServer() as server:
        processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        folder = server.folder
        assert len(processes) > 1
        assert folder.exists()

    assert [process for process in processes if process.is_running()] == []
    assert not folder.exists()


def test_a_server_that_cannot_start_says_why(server: PostgresServer) -> None:
    server.stop()
    (server.folder / "data" / "postgresql.conf").write_text("no_such_setting = 1\n", encoding="utf-8")
    with pytest.raises(PostgresFailed, match="no_such_setting"):
        server.start()
