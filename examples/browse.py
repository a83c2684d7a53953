"""Browse the sessions of any ACP agent, and go on with one of them.

python examples/browse.py --cwd /home/me/project -- hitherto acp
python examples/browse.py --resume SESSION --say "Where were we?" -- hitherto acp
"""

from __future__ import annotations

import argparse
import asyncio

from hitherto.acp.client import Client, Ended, SessionRow
from hitherto.errors import HithertoError


async def show(client: Client, cwd: str | None) -> None:
    """Print every session, page by page."""
    cursor, number = None, 0
    while number == 0 or cursor is not None:
        page = await client.list_page(cwd=cwd, cursor=cursor)
        cursor, number = page.next_cursor, number + 1
        print(f"page {number}: {len(page.sessions)} sessions")
        for row in page.sessions:
            print(f"  {row.session_id}  {row.updated_at or '':24}  {row.title or '(no title)'}")


async def find(client: Client, session_id: str) -> SessionRow:
    """The row of a session: whoever opens one has to know its folder."""
    async for row in client.list_sessions():
        if row.session_id == session_id:
            return row
    raise SystemExit(f"the agent lists no session {session_id}")


async def resume(client: Client, session_id: str, said: str) -> None:
    """Go on with a session; an agent that cannot resume may be able to load, which tells it all again."""
    row = await find(client, session_id)
    can_resume = client.agent.supports("session/resume")
    reopen = client.resume_session if can_resume else client.load_session
    await reopen(row.session_id, row.cwd)
    async for step in client.prompt(row.session_id, said):
        if isinstance(step, Ended):
            print(f"[{step.stop_reason}]")
        elif step.kind == "agent_message_chunk":
            print(step.text, end="", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description="Browse the sessions of an ACP agent.")
    parser.add_argument("--cwd", help="only sessions of this folder")
    parser.add_argument("--resume", metavar="SESSION", help="go on with this session")
    parser.add_argument("--say", default="Where were we?", help="what to say in it")
    parser.add_argument("agent", nargs="+", help="the command that starts the agent, after --")
    given = parser.parse_args()
    try:
        async with Client.start(given.agent[0], given.agent[1:], name="browse") as client:
            if given.resume:
                await resume(client, given.resume, given.say)
            else:
                await show(client, given.cwd)
    except HithertoError as error:
        raise SystemExit(error.message) from None


if __name__ == "__main__":
    asyncio.run(main())
