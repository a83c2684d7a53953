"""Rows about PostgreSQL: its own faults, and more than one server on it."""

from __future__ import annotations

from torture.kills import cluster, postgres
from torture.trial.needs import NAMESPACES, PACKET_RULES, ROOT
from torture.trial.program import broken, whole
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
