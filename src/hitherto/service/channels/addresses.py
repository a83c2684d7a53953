"""Sessions of a chat gateway: found by key or id, made for a key, moved to another."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from hitherto.errors import AlreadyExists, InvalidInput, SessionNotFound
from hitherto.model import Address, Appended, Draft, Identity, Json, Principal, Session
from hitherto.ports import Reader, Writer
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.core import Room
from hitherto.service.history.entries import Entries
from hitherto.service.history.forks import Forks
from hitherto.service.records import change_session, require_session, require_writable
from hitherto.service.validation import CLAIMED, checked_owner, is_clean
from hitherto.values.keys import Kind, SessionKey, encode_name

GATEWAY = "gateway"
"""The channel of a session that belongs to none."""
GUEST = "guest"
"""The role of a person who writes on a channel."""
PREVIOUS = "previous"
"""The key of a session's meta under which stands the id of the one whose place it took."""


def address_of(
    key: SessionKey | None, role: str, *, agent_id: str | None = None, channel: str | None = None
) -> Address:
    """The address of a session of this key, created by this role; agent and channel are needed if the key has none.

    Raises `InvalidInput` if they contradict the key.
    """
    if key is None:
        return Address(
            agent_id=agent_id or "main", channel=channel or GATEWAY, identity=_holder(role, channel)
        )
    if agent_id not in (None, key.agent) or (key.channel is not None and channel not in (None, key.channel)):
        raise InvalidInput(f"the key {key} names another agent or channel than the request")
    own = key.channel or channel or GATEWAY
    identity = _holder(role, own) if key.channel is None else _person(key)
    return Address(key=str(key), agent_id=key.agent, channel=own, identity=identity)


class Channels(Room):
    """Sessions that are reached by key."""

    async def resolve(self, who: Principal, name: str) -> Session:
        """The session that this is the key or the id of."""
        return await self._store.read(lambda tx: _addressed(tx, who, name))

    async def begin(
        self,
        who: Principal,
        address: Address,
        *,
        cwd: str | None = None,
        title: str | None = None,
        parent: str | None = None,
    ) -> Session:
        """Make an empty session there; `parent` names the session that it works for. `AlreadyExists` if one is there.

        By default the parent of a subagent's session is the agent's main session.
        """

        async def work(tx: Writer) -> Session:
            above = await _above(tx, who, address, parent)
            made = await Catalog(self._core.within(tx)).create(
                who,
                cwd=cwd,
                title=title,
                key=address.key,
                agent_id=address.agent_id,
                channel=address.channel,
                identity=address.identity,
            )
            if above is None:
                return made
            record = await require_session(tx, who, made.id)
            return (await change_session(tx, record, "create", parent=above)).session

        return await self._store.write(work)

    async def begin_with(
        self,
        who: Principal,
        address: Address,
        drafts: Sequence[Draft],
        *,
        idempotency_key: str | None = None,
        expected_revision: int | None = None,
    ) -> tuple[Session, Appended]:
        """Make a session there and say these in it, all of that or nothing. `AlreadyExists` if one is there."""

        async def work(tx: Writer) -> tuple[Session, Appended]:
            inner = self._core.within(tx)
            made = await Channels(inner).begin(who, address)
            return made, await Entries(inner).append(
                who, made.id, drafts, idempotency_key=idempotency_key, expected_revision=expected_revision
            )

        return await self._store.write(work)

    async def start_anew(
        self, who: Principal, session_id: str, *, title: str | None = None
    ) -> tuple[Session, Session]:
        """Give the session's key to a fresh one in the same place; the old one keeps its id, and all that was said.

        Returns both, the old one first.
        """
        self._core.home.check_allowed("restarted")

        async def work(tx: Writer) -> tuple[Session, Session]:
            record = await require_session(tx, who, session_id)
            await require_writable(tx, record, None)
            old = record.session
            if old.key is not None:
                record = await change_session(tx, record, "route", key=None)
            catalog = Catalog(self._core.within(tx))
            # Whoever asks for it names no folder: that of the old one is as good as it was.
            fresh = await catalog.create(
                replace(who, local=True),
                cwd=old.cwd,
                project=old.project,
                branch=old.branch,
                additional_directories=old.additional_directories,
                title=title,
                key=old.key,
                agent_id=old.agent_id,
                channel=old.channel,
                identity=old.identity,
                meta={PREVIOUS: old.id},
            )
            if CLAIMED in old.meta:
                fresh = await catalog.set_own_meta(who, fresh.id, {CLAIMED: True})
            return record.session, fresh

        return await self._store.write(work, session_id)

    async def fork_to(
        self,
        who: Principal,
        session_id: str,
        address: Address | None,
        *,
        at: str | None = None,
        before: bool = False,
        checkpoint: str | None = None,
        title: str | None = None,
    ) -> Session:
        """A fork, or a branch from a checkpoint, that stands at an address of its own."""

        async def work(tx: Writer) -> Session:
            forks = Forks(self._core.within(tx))
            if checkpoint is None:
                made = await forks.fork(who, session_id, at=at, before=before, title=title)
            else:
                made = await forks.branch(who, session_id, checkpoint, title=title)
            return made if address is None else await self._put_at(tx, who, made.id, address)

        return await self._store.write(work, session_id)

    async def readdress(self, who: Principal, session_id: str, address: Address) -> Session:
        """Move a session to another address. `AlreadyExists` if another session has the key."""
        return await self._store.write(lambda tx: self._put_at(tx, who, session_id, address), session_id)

    async def amend(
        self,
        who: Principal,
        session_id: str,
        *,
        title: str | UnsetType | None = UNSET,
        tags: Sequence[str] | None = None,
        archived: bool | None = None,
        pinned: bool | None = None,
        meta: Json | None = None,
    ) -> Session:
        """Change what is said about a session, all of it or nothing."""

        async def work(tx: Writer) -> Session:
            catalog, session = (
                Catalog(self._core.within(tx)),
                (await require_session(tx, who, session_id)).session,
            )
            if title is not UNSET:
                session = await catalog.rename(who, session_id, title)
            if tags is not None:
                session = await catalog.tag(who, session_id, add=tags, remove=session.tags)
            if archived is not None:
                session = await catalog.archive(who, session_id, archived=archived)
            if pinned is not None:
                session = await catalog.pin(who, session_id, pinned=pinned)
            return session if meta is None else await catalog.set_meta(who, session_id, meta)

        return await self._store.write(work, session_id)

    async def _put_at(self, tx: Writer, who: Principal, session_id: str, address: Address) -> Session:
        record = await require_session(tx, who, session_id)
        other = None if address.key is None else await tx.by_key(record.owner, address.key)
        if other is not None and other.num != record.num:
            raise AlreadyExists(f"a session with the key {address.key!r} already exists")
        self._core.home.check_session(replace(record.session, key=address.key))
        moved = await change_session(
            tx,
            record,
            "route",
            key=address.key,
            agent_id=address.agent_id,
            channel=address.channel,
            identity=address.identity,
        )
        return moved.session


async def _above(tx: Reader, who: Principal, address: Address, parent: str | None) -> str | None:
    if parent is not None:
        return (await _addressed(tx, who, parent)).id
    if address.key is None or not address.key.startswith("subagent:") or address.agent_id is None:
        return None
    main = await tx.by_key(checked_owner(who), str(SessionKey(Kind.MAIN, address.agent_id)))
    return None if main is None else main.session.id


async def _addressed(tx: Reader, who: Principal, name: str) -> Session:
    owner = checked_owner(who)
    record = await tx.by_key(owner, name) or await tx.session(owner, name) if is_clean(name) else None
    if record is None:
        raise SessionNotFound(name)
    return record.session


def _holder(role: str, channel: str | None) -> Identity:
    """Whoever holds the token."""
    return Identity(role=role, identity_id=role, source_channel=channel or GATEWAY)


def _person(key: SessionKey) -> Identity:
    """Whoever writes on a channel: the same id on two channels, or to two accounts, is not one person."""
    among = "group:" if key.kind is Kind.GROUP else ""
    held = "" if key.account is None else f"account:{encode_name(key.account)}:"
    name = f"{encode_name(key.channel or '')}:{held}{among}{encode_name(key.name or '')}"
    return Identity(role=GUEST, identity_id=name, source_channel=key.channel)
