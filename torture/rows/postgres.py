"""Rows about PostgreSQL: its own faults, and more than one server on it."""

from __future__ import annotations

from tests.mutants import Change
from torture.histories import feed
from torture.kills import cluster, postgres
from torture.trial.needs import NAMESPACES, PACKET_RULES, ROOT
from torture.trial.program import broken, changed, whole
from torture.trial.row import Row

R4 = Row(
    key="R4",
    promise="PostgreSQL can be killed, restarted or cut off under load without losing a message",
    target="0 lost and 0 stored twice in 100 kills, 50 restarts and 50 partitions; all served again within 5 s "
    "(p95 of each kind)",
    how=(
        "Four clients append through `hitherto serve` and retry, with the same key, what was not acknowledged."
        " Meanwhile all processes of PostgreSQL are killed with SIGKILL and it is started again, it is restarted"
        " in its fast mode, or every packet to and from it is dropped for 0.3 to 12 seconds (it runs in a network"
        " namespace of its own). The time counts from the moment when PostgreSQL answers again, or packets pass,"
        " until all four clients are acknowledged. In the end every acknowledged message must be in the store. The"
        " short form uses a relay that falls silent instead of the namespace, and needs no root. The control only"
        " has kills: before a restart PostgreSQL writes everything to disk."
    ),
    run=postgres.trial(),
    control=postgres.trial(careless=True),
    broken="`synchronous_commit=off` in the address of the store, and PostgreSQL is killed",
    needs=(ROOT, NAMESPACES, PACKET_RULES),
)
R20 = Row(
    key="R20",
    promise="Clients of three servers on one PostgreSQL lose nothing when a server is killed or cut off",
    target="20 rounds: 0 lost, 0 stored twice, 0 missed or sent twice by cursors; every turn taken over within 3 s of the "
    "end of its lease, never before, and 0 words of the late one stored",
    how=(
        "PostgreSQL, with its tables in 16 partitions, runs in a network namespace and has an address for each server; the"
        " servers have separate process id namespaces, so that only time shows them that another has died. Six clients write"
        " and six listen, spread over the servers; two turns run. Then one server is killed with SIGKILL, and all packets"
        " between another and PostgreSQL are dropped. Clients move to the next server with their keys and cursors; new prompts"
        " take the turns over. A listening client must receive every message that was sent after it subscribed. The server"
        " that was cut off is reconnected at the moment when its turn wants to store its answer."
    ),
    run=whole(cluster.run_trial),
    control=broken(cluster.run_trial, "fence-ignored"),
    broken="the fence of a lease is ignored",
    needs=(ROOT, NAMESPACES, PACKET_RULES),
    in_tests=False,  # a lease must end in it, and that takes long
    short_forms=(
        "tests/gateway/events/test_subscriptions.py::test_a_client_that_moves_to_another_server_misses_nothing",
        "tests/gateway/server/test_shutdown.py::test_another_server_goes_on_with_the_session",
        "tests/service/turns/test_leases.py::test_a_holder_that_slept_past_its_lease_cannot_write",
    ),
)

# Numbers that nobody waits for, in one lane: a later one may be seen before an earlier one.
UNORDERED = (
    Change("stores/postgres/rows.py", "digest()[0] & (LANES - 1)", "digest()[0] & 0"),
    Change(
        "stores/postgres/pending_rows.py",
        """    INSERT INTO lane AS l (owner, lane, change) VALUES (%(owner)s, %(lane)s, 1)
    ON CONFLICT (owner, lane) DO UPDATE SET change = l.change + 1 RETURNING l.change AS number
""",
        """    SELECT nextval('session_num') AS number, pg_sleep(random() * 0.3)
""",
    ),
    Change(
        "stores/postgres/read_tx.py",
        """SELECT lane, (%(known)s::bigint[])[lane + 1] AS known FROM lane
WHERE owner = %(owner)s AND change > (%(known)s::bigint[])[lane + 1]
""",
        """SELECT lane, (%(known)s::bigint[])[lane + 1] AS known FROM generate_series(0, 63) lane WHERE %(owner)s <> ''
""",
    ),
)
FEED = Row(
    key="R20b",
    promise="Whoever follows the change feed of one owner misses nothing, whatever happens to writers and connections",
    target="64 writers, 200 killed connections before and after a move by pg_dump: 0 missed, 0 twice or out of order within a session",
    how=(
        "64 writers of one owner, at two servers on one PostgreSQL, create sessions and append to them, alone, to the same eight,"
        " and to up to eleven in one transaction, of which three in ten are given up at their end. Connections that are at work are"
        " ended with `pg_terminate_backend`. Meanwhile four readers follow the feed, seven changes at a time, and go to the"
        " other server with each page. Then the database is copied by `pg_dump` and `psql`, and everything goes on in the copy, the"
        " readers from where they were. In the end each reader must have been given the newest revision of every session, and"
        " never one that is not newer than the one before."
    ),
    run=whole(feed.run_trial),
    control=changed(feed.run_trial, *UNORDERED),
    broken="changes are numbered by one sequence, which nobody waits for",
)
