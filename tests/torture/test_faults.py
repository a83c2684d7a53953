"""A handful of faults in turn: all of them are for `make torture`."""

from __future__ import annotations

from tests.support.postgres_server import PostgresServer
from torture.faults.postgres import AFTER, cut_in_turn


def test_an_append_is_certain_wherever_postgres_is_cut_off(postgres_server: PostgresServer) -> None:
    told = cut_in_turn(str(postgres_server.folder), ["append"], [AFTER])
    assert told["wrong"] == []
    assert told["sums"]["refused"] > 0  # the COMMIT was on its way
    assert told["sums"]["passed"] > 0
