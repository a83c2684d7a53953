"""`hitherto doctor`."""

from __future__ import annotations

from typing import Any

import click

from hitherto.cli.command import command
from hitherto.cli.terminal import exit_codes
from hitherto.cli.terminal.files import new_file
from hitherto.cli.terminal.output import Output, progress
from hitherto.ports import Mode
from hitherto.presentation import formats
from hitherto.service import Sessions

REPAIRABLE = "`hitherto doctor --repair` repairs what is derived. It removes no message."
LASTING = "What is damaged cannot be repaired: go back to a backup with `hitherto restore-backup`, or copy what can be read with `hitherto recover`."


def _mode(*, repair: bool, put_back: tuple[int, ...], **_: Any) -> Mode:
    return "change" if repair or put_back else "read"


@command(
    "hitherto doctor",
    "hitherto doctor --repair",
    "hitherto doctor --quarantine",
    "hitherto doctor --quarantine --put-back 17",
    opens=_mode,
)
@click.option(
    "--repair", is_flag=True, help="Repair what is derived; move what nothing explains to quarantine."
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
    """
    if repair and (no_repair or quarantine):
        raise click.UsageError("use --repair alone")
    if (export is not None or put_back) and not quarantine:
        raise click.UsageError("--export and --put-back need --quarantine")
    if export is not None:
        await _export(sessions, out, export)
    elif put_back:
        await _put_back(sessions, out, put_back)
    elif quarantine:
        await _list(sessions, out)
    else:
        return await _check(sessions, out, repair=repair)
    return exit_codes.OK


async def _check(sessions: Sessions, out: Output, *, repair: bool) -> int:
    with progress("Checking", None):
        health = await sessions.admin.check(repair=repair)
    if out.json:
        out.document(health)
    else:
        kinds = (("checked", health.checked), ("repaired", health.repaired), ("problem", health.problems))
        for kind, each in ((kind, each) for kind, found in kinds for each in found):
            out.row(kind, each)
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
