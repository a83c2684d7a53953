"""Which project a session belongs to: the same for all worktrees and clones of a repository, wherever it was moved."""

from __future__ import annotations

import asyncio
import posixpath
from hashlib import sha256
from typing import TypedDict

from hitherto.errors import InvalidInput
from hitherto.limits import NAME_CHARS, is_storable
from hitherto.model import LOCAL, Filter, Json, Principal, Session
from hitherto.ports import Reader, Writer
from hitherto.projects import Checkout, checkout_of
from hitherto.service.catalog.metadata import edit_session
from hitherto.service.catalog.sessions import Catalog
from hitherto.service.core import Core, Room
from hitherto.service.validation import checked_name, checked_owner, checked_required
from hitherto.values.filters import normal_cwd

PLACELESS = 500
FOLDER = "folder:"
RENAMED = "name:"
HOPS = 20
"""How often in a row a project can have been renamed."""
SHORT = 7
"""This much of a commit id distinguishes repositories of the same name."""


class Projects(Room):
    """Sessions and their projects."""

    def __init__(self, core: Core, catalog: Catalog) -> None:
        super().__init__(core)
        self._catalog = catalog

    async def place(self, who: Principal, cwd: str, seen: Checkout | None = None) -> str:
        """The name of the project that a folder belongs to, `seen` being what was read from the folder.

        A repository with a remote is called by it. One without keeps the name that it was first met under, which its
        root commit identifies, until it has one; then all its sessions go by that. If another repository has that name, the
        commit is added to it. Of a folder that is no longer there it is what was known before. A project that was renamed or
        merged goes by its new name.
        """
        owner = checked_owner(who)
        if seen is not None:
            read = checked_required(seen.project, "a project")
            seen = seen._replace(project=await self._store.read(lambda tx: renamed_to(tx, owner, read)))
        found = await self._place(who, normal_cwd(cwd), seen)
        return await self._store.read(lambda tx: renamed_to(tx, owner, found))

    async def rename(self, who: Principal, project: str, name: str) -> int:
        """Give a project another name, for good; if there is one of that name, they are one from then on. Returns how many
        sessions have moved.

        What is placed in it later, by sync or in a folder of it, goes by the new name.
        """
        owner = checked_owner(who)
        new = checked_required(name, "a project")
        known = await self._store.read(lambda tx: tx.projects(owner))
        if project not in known:
            raise InvalidInput(f"there is no project {project!r:.80}; `hitherto project` lists all")
        if new == project:
            return 0

        async def work(tx: Writer) -> None:
            for key in await tx.roots(owner, project):
                await tx.put_root(owner, key, new)
            await tx.put_root(owner, _name_key(project), new)
            # The name is free again for what is called so from here on.
            await tx.put_root(owner, _name_key(new), new)

        # Before the sessions: if this is interrupted, what comes next goes by the new name already, and it can be repeated.
        await self._store.write(work)
        given = Filter(project=project, archived="include")
        found = [session async for session in self._catalog.every(who, given)]
        for session in found:
            await self.assign(who, session.id, new)
        return len(found)

    async def counts(self, who: Principal) -> tuple[tuple[str, int], ...]:
        """All projects, by name, and how many sessions each has, archived ones too."""
        owner = checked_owner(who)
        names = await self._store.read(lambda tx: tx.projects(owner))
        return tuple(
            [
                (name, await self._catalog.count(who, Filter(project=name, archived="include")))
                for name in names
            ]
        )

    async def _place(self, who: Principal, cwd: str, seen: Checkout | None) -> str:
        for text, what in ((seen.project, "a project"), (seen.root, "a commit")) if seen else ():
            checked_name(text, what)
        if seen is None:
            return await self._project_of(who, cwd) or folder_name(cwd)
        owner, folder = checked_owner(who), _folder_key(cwd)
        known = await self._store.read(lambda tx: tx.rooted(owner, seen.root or folder))
        if known is not None and not _is_remote(known) and _is_remote(seen.project):
            await self._renamed(who, known, seen)
        if seen.root is None:
            return seen.project if known is None or _is_remote(seen.project) else known
        return await self._rooted(owner, folder, seen.root, seen.project)

    async def place_folder(self, who: Principal, cwd: str, project: str) -> int:
        """Give all sessions of a folder that have none this project; returns how many."""
        given = Filter(cwd=cwd, archived="include")
        found = [session async for session in self._catalog.every(who, given) if session.project is None]
        for session in found:
            await self.assign(who, session.id, project)
        return len(found)

    async def assign(
        self, who: Principal, session_id: str, project: str | None, *, branch: str | None = None
    ) -> Session:
        """Say which project a session belongs to; its branch stays unless one is given."""

        def placed(session: Session) -> Json:
            name, known = checked_name(project, "a project"), checked_name(branch, "a branch")
            return {"project": name, "branch": known or session.branch}

        return await edit_session(self._store, who, session_id, "place", placed)

    async def placeless(self, who: Principal) -> list[str]:
        """Some folders of sessions of which nobody has said yet to which project they belong."""
        owner = checked_owner(who)
        return await self._store.read(lambda tx: tx.placeless(owner, PLACELESS))

    async def called(self, who: Principal, name: str) -> str:
        """The project of this name or, if there is none, the only one whose name ends so: `engine`, `ada/engine`."""
        owner = checked_owner(who)
        if not is_storable(name):
            raise InvalidInput("a project's name cannot contain NUL or lone surrogates")
        return await self._store.read(lambda tx: _resolve_name(tx, owner, name))

    async def _project_of(self, who: Principal, cwd: str) -> str | None:
        page = await self._catalog.find(who, Filter(cwd=cwd, archived="include"), limit=1)
        return next((session.project for session in page.sessions), None)

    async def _rooted(self, owner: str, folder: str, root: str, project: str) -> str:
        """The name under which the repository goes, that of a remote if it has one; the folder is known to be of it."""

        async def work(tx: Writer) -> str:
            known = None if _is_remote(project) else await tx.rooted(owner, root)
            name = known or await _free_name(tx, owner, root, project)
            for key in (root, folder):
                await tx.put_root(owner, key, name)
            return name

        async def known(tx: Reader) -> list[str | None]:
            return [await tx.rooted(owner, key) for key in (root, folder)]

        name, there = await self._store.read(known)
        if name is not None and name == there and (name == project or not _is_remote(project)):
            return name
        return await self._store.write(work)

    async def _renamed(self, who: Principal, old: str, seen: Checkout) -> None:
        """A repository has a remote now: sessions of all folders that are known to be of it go by the new name."""
        owner = checked_owner(who)
        keys = set(await self._store.read(lambda tx: tx.roots(owner, old)))
        found = [
            session async for session in self._catalog.every(who, Filter(project=old, archived="include"))
        ]
        for session in found:
            cwds = [cwd for cwd in (session.cwd, *session.earlier_cwds) if cwd is not None]
            if any(_folder_key(cwd) in keys or f"{cwd}/".startswith(f"{seen.top}/") for cwd in cwds):
                await self.assign(who, session.id, seen.project)

        async def work(tx: Writer) -> None:
            for key in keys:
                await tx.put_root(owner, key, seen.project)

        # Behind the sessions: if this is interrupted, it is begun again.
        await self._store.write(work)


class ProjectFields(TypedDict):
    """What is known of the repository of a folder; to be given to `create`."""

    project: str | None
    branch: str | None


async def project_of_folder(projects: Projects, cwd: str | None, who: Principal = LOCAL) -> ProjectFields:
    """The project and the branch of a folder of this machine, for the person at it; neither without a folder.

    This looks into the folder: never for a folder that somebody elsewhere has named.
    """
    if cwd is None:
        return ProjectFields(project=None, branch=None)
    # On a thread: the folder may lie on a disk that is slow to answer.
    seen = await asyncio.to_thread(checkout_of, normal_cwd(cwd))
    return ProjectFields(
        project=await projects.place(who, cwd, seen), branch=None if seen is None else seen.branch
    )


async def _resolve_name(tx: Reader, owner: str, name: str) -> str:
    """The project that somebody means who writes this name."""
    known = await tx.projects(owner)
    ending = [project for project in known if project.endswith(f"/{name}")]
    return ending[0] if name not in known and len(ending) == 1 else name


async def _free_name(tx: Reader, owner: str, root: str, project: str) -> str:
    """The name of a repository that was not met before: not that of another one, unless both have that remote."""
    taken = [] if _is_remote(project) else await tx.roots(owner, project)
    if all(key.startswith((FOLDER, RENAMED)) for key in taken):
        return project
    mark = f"@{root[:SHORT]}"
    return project[: NAME_CHARS - len(mark)] + mark


def _folder_key(cwd: str) -> str:
    """How a folder is kept by which a repository is known: not by its name, which goes with the sessions in it."""
    return FOLDER + sha256(cwd.encode("utf-8", "surrogatepass")).hexdigest()


def _name_key(project: str) -> str:
    """How a project is kept that was renamed: by a digest, so that any name fits."""
    return RENAMED + sha256(project.encode("utf-8", "surrogatepass")).hexdigest()


async def renamed_to(tx: Reader, owner: str, project: str) -> str:
    """The name that a project has now."""
    for _ in range(HOPS):
        new = await tx.rooted(owner, _name_key(project))
        if new is None or new == project:
            return project
        project = new
    return project


def _is_remote(project: str) -> bool:
    return "/" in project


def folder_name(cwd: str) -> str:
    """The name of a project that is no repository: the last part of its path."""
    name = posixpath.basename(cwd).removesuffix(".git") or cwd
    return name[:NAME_CHARS] if is_storable(name) else "folder"
