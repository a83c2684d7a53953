"""Every method of the gateway, in one table: what it takes and gives, which scope it needs, whose sessions it is about.

All transports answer from this table, `rpc.discover` and the reference are made from it. A method is a function in one
of the modules beside this one, and a row here.
"""

from __future__ import annotations

from functools import cache

from msgspec import Raw
from msgspec.structs import replace

from hitherto.gateway.dispatch import openrpc
from hitherto.gateway.dispatch.method import Call, Method, Owns
from hitherto.gateway.dispatch.schema import Details, Named, NamedWriting, Overwriting, Params
from hitherto.gateway.methods import (
    changes,
    compaction,
    create,
    edit,
    identities,
    inbox,
    list,
    memory,
    read,
    search,
    store,
    store_streams,
    subscriptions,
    tokens,
    transfer,
    turns,
)
from hitherto.limits import PERSON_BYTES

SESSION, OR_NEW, IF_NAMED = Owns.SESSION, Owns.SESSION_OR_NEW, Owns.SESSION_IF_NAMED
OWN, NOTHING = Owns.OWN, Owns.NOTHING
PAGE = read.PAGE_BYTES


async def discover(call: Call[Params]) -> Raw:  # noqa: ARG001 - it is the same for everyone
    """Get this table as an OpenRPC document."""
    return _document()


METHODS: dict[str, Method] = {
    "session.get": Method(read.get, Named, Details, "read", SESSION),
    "session.list": Method(list.list_sessions, list.ListSessions, list.Rows, "read", OWN),
    "session.history": Method(read.history, read.GetHistory, read.History, "read", SESSION, most=PAGE),
    "session.changes": Method(changes.changes, changes.GetChanges, changes.Changes, "read", SESSION, most=changes.CHANGES_BYTES),
    "session.episodes": Method(compaction.list_episodes, compaction.EpisodesOf, compaction.Episodes, "read", SESSION),
    "changes.list": Method(changes.touched, changes.ListTouched, changes.Touched, "read", OWN, reached=False),
    "session.usage": Method(read.usage, read.UsageOf, read.SessionUsage, "read", SESSION),
    "usage.report": Method(read.report, read.GetReport, read.UsageReport, "read", OWN, reached=False),
    "session.search": Method(search.search, search.Search, search.Results, "read", OWN),
    "session.resolve": Method(search.resolve, search.Resolve, search.Resolved, "read", OWN),
    "session.create": Method(create.create, create.Create, create.Created, "write", OWN),
    "session.append": Method(edit.append, edit.Append, edit.Appended, "write", OR_NEW),
    "session.fork": Method(create.fork, create.Fork, create.Forked, "write", SESSION),
    "session.compact": Method(compaction.compact, Overwriting, compaction.Compacted, "write", SESSION, waits=True, lasts=True),
    "session.erase": Method(edit.erase, edit.Erase, edit.Erased, "write", SESSION),
    "session.delete": Method(edit.delete, Overwriting, edit.Deleted, "write", SESSION, final=True),
    "session.export": Method(
        transfer.export, transfer.Export, transfer.Exported, "read", SESSION, needs={"raw": "raw"},
        most=transfer.EXPORT_BYTES,
    ),
    "session.import": Method(transfer.import_session, transfer.Import, transfer.Imported, "write", OWN, reached=False),
    "session.send": Method(turns.send, turns.Send, turns.Sent, "run", SESSION, waits=True, lasts=True),
    "session.inbox": Method(inbox.list_inbox, Named, inbox.InboxOf, "read", SESSION, most=PAGE),
    "session.inbox.cancel": Method(inbox.cancel, inbox.Withdraw, inbox.Withdrawn, "write", SESSION),
    "session.inbox.move": Method(inbox.move, inbox.Move, inbox.Moved, "write", SESSION),
    "session.question": Method(turns.question, Named, turns.Question, "read", SESSION),
    "session.answer": Method(turns.answer, turns.GiveAnswer, turns.Answered, "commands", SESSION),
    "session.reply": Method(turns.reply, turns.GiveReply, turns.Answered, "commands", SESSION),
    "session.cancel": Method(turns.cancel, NamedWriting, turns.Cancelled, "run", SESSION),
    "session.subscribe": Method(subscriptions.subscribe, subscriptions.Subscribe, subscriptions.Subscribed, "read", IF_NAMED),
    "session.unsubscribe": Method(subscriptions.unsubscribe, subscriptions.Unsubscribe, subscriptions.Unsubscribed, "read", NOTHING),
    "sessions.list": Method(list.list_runtime, list.ListRuntime, list.RuntimeRows, "read", OWN),
    "sessions.history": Method(
        read.runtime_history, read.RuntimeHistory, read.CountedHistory, "read", SESSION, most=PAGE
    ),
    "sessions.preview": Method(read.preview, read.GetPreview, read.Preview, "read", SESSION, most=PAGE),
    "sessions.new": Method(create.move_key, create.NewSession, create.MovedKey, "write", SESSION),
    "sessions.reset": Method(edit.reset, edit.ResetSession, edit.Reset, "write", SESSION),
    "sessions.delete": Method(edit.delete_runtime, Overwriting, edit.RuntimeDeleted, "write", SESSION, final=True),
    "sessions.set_topic": Method(edit.set_topic, edit.SetTopic, edit.Updated, "write", SESSION),
    "sessions.patch": Method(edit.patch, edit.Patch, edit.Updated, "write", SESSION),
    "sessions.compaction.list": Method(
        compaction.list_checkpoints, compaction.ListCheckpoints, compaction.Checkpoints, "read", SESSION
    ),
    "sessions.compaction.restore": Method(
        compaction.restore, compaction.Restore, compaction.Restored, "write", SESSION
    ),
    "sessions.compaction.branch": Method(create.branch, create.Branch, create.Branched, "write", SESSION),
    "route.resolve": Method(search.resolve_route, search.ResolveRoute, search.Routed, "read", OWN),
    "identity.link": Method(identities.link, identities.Link, identities.Accounts, "admin", OWN),
    "identity.unlink": Method(identities.unlink, identities.Peer, identities.Unlinked, "admin", OWN),
    "identity.accounts": Method(identities.accounts, identities.Peer, identities.Accounts, "read", OWN),
    "identity.export": Method(identities.export, identities.Peer, identities.ExportedPerson, "admin", OWN, waits=True, most=PERSON_BYTES),
    "identity.erase": Method(identities.erase, identities.Peer, identities.ErasedPerson, "admin", OWN, waits=True),
    "token.create": Method(tokens.create, tokens.CreateToken, tokens.MadeToken, "admin", OWN),
    "token.list": Method(tokens.list_tokens, tokens.ListTokens, tokens.Tokens, "admin", OWN),
    "token.revoke": Method(tokens.revoke, tokens.NamedToken, tokens.RevokedToken, "admin", OWN),
    "token.rotate": Method(tokens.rotate, tokens.NamedToken, tokens.MadeToken, "admin", OWN),
    "memory.search": Method(memory.search, memory.Recall, memory.Facts, "read", OWN),
    "memory.list": Method(memory.list_facts, memory.ListFacts, memory.Facts, "read", IF_NAMED),
    "memory.add": Method(memory.add, memory.AddFact, memory.Remembered, "write", IF_NAMED),
    "memory.update": Method(memory.update, memory.UpdateFact, memory.Remembered, "write", OWN),
    "memory.forget": Method(memory.forget, memory.Forget, memory.Forgotten, "write", OWN),
    **{name: replace(method, reached=False) for name, method in (store.SERVICE_METHODS | store_streams.STREAM_METHODS).items()},
    "rpc.discover": Method(discover, Params, Raw, "read", NOTHING),
}  # fmt: skip


@cache
def _document() -> Raw:
    return Raw(openrpc.document(METHODS))
