"""`hitherto doctor`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import click

from hitherto.cli.command import command, complete_session
from hitherto.cli.options.session_ids import named_session
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.files import new_file
from hitherto.cli.terminal.output import Output, progress
from hitherto.errors import HithertoError
from hitherto.model import LOCAL
from hitherto.ports import Mode
from hitherto.presentation import formats
from hitherto.service import Sessions
from hitherto.settings import read_settings
from hitherto.sources.mend.doctor import TranscriptDoctor
from hitherto.sources.sync.ledger import Ledger

REPAIRABLE = "`hitherto doctor --repair` repairs what is derived. It removes no message."
LASTING = "What is damaged cannot be repaired: go back to a backup with `hitherto restore-backup`, or copy what can be read with `hitherto recover`."

ORDERING = "Search is being put in the order of time after an upgrade, while the store is in use: about {} messages and titles are left."


HEALTHY = "Nothing is wrong with this transcript."
MENDABLE = "`hitherto doctor {session} --repair` writes a new session without this. The file stays as it is."


def _mode(*, repair: bool, put_back: tuple[int, ...], **_: Any) -> Mode:
    return "change" if repair or put_back else "read"


@command(
    "hitherto doctor",
    "hitherto doctor --repair",
    "hitherto doctor --quarantine",
    "hitherto doctor --quarantine --put-back 17",
    "hitherto doctor claude:550e8400-e29b-41d4-a716-446655440000",
    "hitherto doctor codex:019a8c0e-7b1f-7c6e-9f0e-0c8b7f0d6a51 --repair",
    opens=_mode,
)
@click.argument("session", required=False, shell_complete=complete_session)
@click.option(
    "--repair",
    is_flag=True,
    help="Repair what is derived; move what nothing explains to quarantine. Of a session: write a mended one.",
)
@click.option("--no-repair", is_flag=True, help="Only check. This is the default.")
@click.option("--quarantine", is_flag=True, help="List what is in quarantine instead of checking.")
@click.option(
    "--export", metavar="FILE", help="Write the messages in quarantine to this file, as JSON lines."
)
@click.option(
    "--put-back", type=int, metavar="NUMBER", multiple=True, help="Take these messages out of quarantine."
)
async def run(
    sessions: Sessions,
    out: Output,
    *,
    session: str | None,
    repair: bool,
    no_repair: bool,
    quarantine: bool,
    export: str | None,
    put_back: tuple[int, ...],
) -> int:
    """Check the store, and change nothing.

    With --repair, counts and the search index are rebuilt, and messages that nothing explains are moved to the quarantine.
    No message is ever removed, and nothing derived is rebuilt from damaged data. While a problem remains, deleted sessions
    keep their space. The exit code is 5 if a problem remains.

    With --quarantine, list what is there: number, owner, time, number of messages, reason. --export writes the messages to a
    file. --put-back takes them out: a new session shows them, if no other does.

    With SESSION (claude:ID or codex:ID), examine the transcript of that session in its agent's own files: torn lines, missing
    parents, calls without results, records that are too large, and whatever else the agent may refuse or lose. With --repair, a new
    session without all this is written beside it, with every message; the file itself stays as it is. The exit code is 1 if
    something is wrong and was not mended.
    """
    if repair and (no_repair or quarantine):
        raise click.UsageError("use --repair alone")
    if (export is not None or put_back) and not quarantine:
        raise click.UsageError("--export and --put-back need --quarantine")
    if session is not None:
        if quarantine:
            raise click.UsageError("use --quarantine without a session")
        return await _examine(sessions, out, session, repair=repair)
    if export is not None:
        await _export(sessions, out, export)
    elif put_back:
        await _put_back(sessions, out, put_back)
    elif quarantine:
        await _list(sessions, out)
    else:
        return await _check(sessions, out, repair=repair)
    return exit_codes.OK


async def _examine(sessions: Sessions, out: Output, session: str, *, repair: bool) -> int:
    with suppress(HithertoError):  # one that was never synced is found by its full id
        session = await named_session(sessions, session)
    doctor = TranscriptDoctor(sessions, LOCAL)
    if repair:
        settings = read_settings()
        ledger = Ledger(settings.data_dir / f"sources-{sessions.admin.store_id}.db")
        try:
            done = await doctor.repair(session, ledger, raw=settings.raw_budget > 0)
        finally:
            ledger.close()
    else:
        done = await doctor.examine(session)
    if out.json:
        out.document(done)
    else:
        for each in done.findings:
            out.row(each.kind, each.count, each.wrong, each.repair)
        if done.mended is not None:
            out.line(done.mended)
    if done.findings and not repair:
        out.note(MENDABLE.format(session=session))
    elif not done.findings:
        out.note(HEALTHY)
    return exit_codes.OK if repair or not done.findings else exit_codes.FAILED


async def _check(sessions: Sessions, out: Output, *, repair: bool) -> int:
    with progress("Checking", None):
        health = await sessions.admin.check(repair=repair)
    if out.json:
        out.document(health)
    else:
        kinds = (("checked", health.checked), ("repaired", health.repaired), ("problem", health.problems))
        for kind, each in ((kind, each) for kind, found in kinds for each in found):
            out.row(kind, each)
    if left := await sessions.admin.unordered():
        out.note(ORDERING.format(left))
    if not health.problems:
        return exit_codes.OK
    out.note(LASTING if repair else REPAIRABLE)
    return exit_codes.STORE


async def _list(sessions: Sessions, out: Output) -> None:
    found = await sessions.admin.quarantined()
    if out.json:
        out.document({"quarantine": found})
        return
    for each in found:
        out.row(each.number, each.owner, formats.utc(each.at), each.messages, each.why)
    if not found:
        out.note("The quarantine is empty.")


async def _export(sessions: Sessions, out: Output, name: str) -> None:
    count = 0
    with new_file(name, force=False) as stream:
        for each in await sessions.admin.quarantined():
            async for message in sessions.admin.quarantined_messages(each.number):
                stream.write(message + b"\n")
                count += 1
    if out.json:
        out.document({"file": name, "messages": count})
    else:
        out.note(f"{formats.counted(count, 'message')} exported to {name}")


async def _put_back(sessions: Sessions, out: Output, numbers: tuple[int, ...]) -> None:
    done = []
    for number in numbers:
        made = await sessions.admin.put_back(number)
        done.append({"number": number, "session": made.id if made else None})
        if not out.json:
            out.line(f"Put back {number}{f' as session {made.id}' if made else ''}")
    if out.json:
        out.document({"put_back": done})
