"""Every method of the gateway, in one table: what it takes and gives, which scope it needs, whose sessions it is about.

All transports answer from this table, `rpc.discover` and the reference are made from it. A method is a function in one
of the modules beside this one, and a row here.
"""

from __future__ import annotations

from functools import cache

from msgspec import Raw

from hitherto.gateway import openrpc
from hitherto.gateway.calling import Call, Method, Owns, answer
from hitherto.gateway.context import Context
from hitherto.gateway.errors import failure
from hitherto.gateway.methods import (
    changing,
    compacting,
    exporting,
    finding,
    holding,
    linking,
    listing,
    making,
    prompting,
    reading,
    remembering,
    storing,
    watching,
)
from hitherto.gateway.shapes import Details, Named, NamedWriting, Overwriting, Params

SESSION, OR_NEW, IF_NAMED = Owns.SESSION, Owns.SESSION_OR_NEW, Owns.SESSION_IF_NAMED
OWN, NOTHING = Owns.OWN, Owns.NOTHING
PAGE = reading.PAGE_BYTES


async def discover(call: Call[Params]) -> Raw:  # noqa: ARG001 - it is the same for everyone
    """This table as an OpenRPC document."""
    return _document()


METHODS: dict[str, Method] = {
    "session.get": Method(reading.get, Named, Details, "read", SESSION),
    "session.list": Method(listing.list_sessions, listing.ListSessions, listing.Rows, "read", OWN),
    "session.history": Method(reading.history, reading.GetHistory, reading.History, "read", SESSION, most=PAGE),
    "session.usage": Method(reading.usage, Named, reading.Spent, "read", SESSION),
    "session.search": Method(finding.search, finding.Search, finding.Results, "read", OWN),
    "session.resolve": Method(finding.resolve, finding.Resolve, finding.Resolved, "read", OWN),
    "session.create": Method(making.create, making.Create, making.Created, "write", OWN),
    "session.append": Method(changing.append, changing.Append, changing.Appended, "write", OR_NEW),
    "session.fork": Method(making.fork, making.Fork, making.Forked, "write", SESSION),
    "session.compact": Method(compacting.compact, Overwriting, compacting.Compacted, "write", SESSION, waits=True, lasts=True),
    "session.erase": Method(changing.erase, changing.Erase, changing.Erased, "write", SESSION),
    "session.delete": Method(changing.delete, Overwriting, changing.Deleted, "write", SESSION, final=True),
    "session.export": Method(
        exporting.export, exporting.Export, exporting.Exported, "read", SESSION, needs={"raw": "raw"},
        most=exporting.EXPORT_BYTES,
    ),
    "session.import": Method(exporting.import_session, exporting.Import, exporting.Imported, "write", OWN),
    "session.send": Method(prompting.send, prompting.Send, prompting.Sent, "run", SESSION, waits=True, lasts=True),
    "session.question": Method(prompting.question, Named, prompting.Question, "read", SESSION),
    "session.answer": Method(prompting.answer, prompting.GiveAnswer, prompting.Answered, "commands", SESSION),
    "session.cancel": Method(prompting.cancel, NamedWriting, prompting.Cancelled, "run", SESSION),
    "session.subscribe": Method(watching.subscribe, watching.Subscribe, watching.Subscribed, "read", IF_NAMED),
    "session.unsubscribe": Method(watching.unsubscribe, watching.Unsubscribe, watching.Unsubscribed, "read", NOTHING),
    "sessions.list": Method(listing.list_runtime, listing.ListRuntime, listing.RuntimeRows, "read", OWN),
    "sessions.history": Method(
        reading.runtime_history, reading.RuntimeHistory, reading.CountedHistory, "read", SESSION, most=PAGE
    ),
    "sessions.preview": Method(reading.preview, reading.GetPreview, reading.Preview, "read", SESSION, most=PAGE),
    "sessions.new": Method(making.start_anew, making.Anew, making.Renewed, "write", SESSION),
    "sessions.reset": Method(changing.reset, Overwriting, changing.Reset, "write", SESSION),
    "sessions.delete": Method(changing.delete_runtime, Overwriting, changing.RuntimeDeleted, "write", SESSION, final=True),
    "sessions.set_topic": Method(changing.set_topic, changing.SetTopic, changing.Updated, "write", SESSION),
    "sessions.patch": Method(changing.patch, changing.Patch, changing.Updated, "write", SESSION),
    "sessions.compaction.list": Method(
        compacting.list_checkpoints, compacting.ListCheckpoints, compacting.Checkpoints, "read", SESSION
    ),
    "sessions.compaction.restore": Method(
        compacting.restore, compacting.Restore, compacting.Restored, "write", SESSION
    ),
    "sessions.compaction.branch": Method(making.branch, making.Branch, making.Branched, "write", SESSION),
    "route.resolve": Method(finding.resolve_route, finding.ResolveRoute, finding.Routed, "read", OWN),
    "identity.link": Method(linking.link, linking.Link, linking.Accounts, "admin", OWN),
    "identity.unlink": Method(linking.unlink, linking.Peer, linking.Unlinked, "admin", OWN),
    "identity.accounts": Method(linking.accounts, linking.Peer, linking.Accounts, "read", OWN),
    "memory.search": Method(remembering.search, remembering.Recall, remembering.Facts, "read", OWN),
    "memory.list": Method(remembering.list_facts, remembering.ListFacts, remembering.Facts, "read", IF_NAMED),
    "memory.forget": Method(remembering.forget, remembering.Forget, remembering.Forgotten, "write", OWN),
    **storing.CALLED,
    **holding.HOLDING,
    "rpc.discover": Method(discover, Params, Raw, "read", NOTHING),
}  # fmt: skip


async def call(context: Context, name: str, params: Raw | bytes) -> bytes:
    """The result of a method as JSON. Raises `Failure`, and nothing else."""
    method = METHODS.get(name)
    if method is None:
        raise failure("method_not_found", f"Method not found: {name:.100}", method=name[:100])
    return await answer(context, name, method, params)


@cache
def _document() -> Raw:
    return Raw(openrpc.document(METHODS))
