"""`hitherto admin`: what sets up the database of a store."""

from __future__ import annotations

from tests.cli.shell import Shell


def test_a_store_that_has_no_nodes_is_not_distributed(shell: Shell) -> None:
    done = shell.run("admin", "distribute")
    assert done.code == 5
    assert "only PostgreSQL with Citus can be distributed" in done.err
    assert done.out == ""
