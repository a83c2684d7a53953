"""Files of any size and form are read in bounded memory, and whatever is whole in them is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hitherto.claude import Damage, check_session, get_session_messages, lines, list_sessions, transcript
from tests.claude.transcripts import Record, Writer, compact, save, session_id
from tests.support.waits import LIMIT

CWD = "/home/ann/project"
ID = session_id(1)
MEGABYTE = 1 << 20

# What every call finds, and by how many bytes the process grew.
READ_ALL = """
import json, sys
from hitherto.claude import check_session, get_session_info, get_session_messages, list_sessions
from tests.claude.peak_memory import peak_bytes
before = peak_bytes()
name = sys.argv[1]
info, (listed,) = get_session_info(name), list_sessions()
found = {
    "title": info.custom_title,
    "same": info == listed,
    "said": [message.content for message in get_session_messages(name)],
    "page": [message.content for message in get_session_messages(name, limit=1)],
    "nul_runs": check_session(name).nul_runs,
}
print(json.dumps({**found, "grown": peak_bytes() - before}))
"""


def read_all() -> dict[str, object]:
    """Call everything in a process of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", READ_ALL, ID],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_a_file_of_two_gigabytes_is_read_in_bounded_memory(projects: Path) -> None:
    writer = Writer(ID, CWD)
    writer.user("begin")
    path = writer.save(projects)
    # What a crash leaves behind: a long stretch of the file was never written.
    os.truncate(path, 2_000 * MEGABYTE)
    writer.records.clear()
    writer.user("end")
    writer.title("found behind it all")
    with path.open("ab") as file:
        file.write(writer.data())

    found = read_all()
    assert found.pop("grown") < 50 * MEGABYTE  # type: ignore[operator]
    assert found == {
        "title": "found behind it all",
        "same": True,
        "said": ["begin", "end"],
        "page": ["begin"],
        "nul_runs": 1,
    }


def test_a_large_file_takes_less_memory_than_its_size(projects: Path) -> None:
    writer = Writer(ID, CWD)
    log = compact({"type": "api-request-blob", "sessionId": ID, "message": {"content": "x" * MEGABYTE}})
    data = [log * 40]
    for number in range(40):
        writer.user("x" * MEGABYTE if number == 20 else "short")
        writer.attach("prompt_snapshot", systemPrompt=["y" * MEGABYTE])
        data.append(writer.data())
        writer.records.clear()
    writer.title("large")
    data.append(writer.data())
    path = save(projects, CWD, ID, b"".join(data))
    size = path.stat().st_size
    assert size > transcript.WHOLE

    found = read_all()
    assert found["grown"] < size / 2  # type: ignore[operator]
    assert found["title"] == "large"
    assert len(found["said"]) == 40  # type: ignore[arg-type]


@pytest.mark.parametrize("whole", [0, transcript.WHOLE])
def test_a_line_beyond_all_measure_is_passed_over(
    projects: Path, monkeypatch: pytest.MonkeyPatch, whole: int
) -> None:
    monkeypatch.setattr(lines, "RECORD_LIMIT", 4 * MEGABYTE)
    monkeypatch.setattr(transcript, "WHOLE", whole)
    writer = Writer(ID, CWD)
    writer.user("begin")
    before = writer.data()
    writer.user("x" * 9 * MEGABYTE)
    between = writer.data()[len(before) :]
    writer.user("end")
    writer.title("behind it")
    after = writer.data()[len(before) + len(between) :]
    for middle in (between, between.strip() + b"\0"):
        save(projects, CWD, ID, before + middle + after)

        assert [message.content for message in get_session_messages(ID)] == ["begin", "end"]
        assert list_sessions()[0].custom_title == "behind it"
        damage = check_session(ID)
        assert damage is not None
        assert damage.overlong == 1


def test_a_long_line_within_the_measure_is_read(projects: Path) -> None:
    writer = Writer(ID, CWD)
    writer.user("begin")
    writer.user("x" * 5 * MEGABYTE)
    writer.title("behind it")
    writer.save(projects)
    assert len(get_session_messages(ID)[1].content) == 5 * MEGABYTE
    assert list_sessions()[0].custom_title == "behind it"
    assert check_session(ID) == Damage()


def test_hostile_shapes_take_no_longer_than_their_size_allows(projects: Path) -> None:
    """Each of these would take minutes if anything were walked or tried again and again."""
    deep = b'{"type":' * 60_000 + b"\n"
    torn = b'{"type":[' * 900 + b"1," * 5_000_000 + b"\n"
    chained = [{"type": "progress", "uuid": f"p{n}", "parentUuid": f"p{n - 1}"} for n in range(20_000)]
    fan = [{"type": "attachment", "uuid": f"f{n}", "parentUuid": "p19999"} for n in range(20_000)]
    agents = [
        {"type": "user", "uuid": f"a{n}", "agentId": f"a{n}", "parentUuid": "x", "message": {}}
        for n in range(20_000)
    ]
    boundaries = [
        {"type": "system", "uuid": f"b{n}", "compactMetadata": {"preservedMessages": {"uuids": [f"a{n}"]}}}
        for n in range(20_000)
    ]
    everything: list[Record] = [*chained, *fan, *agents, *boundaries]
    records = b"".join(map(compact, everything))
    last = compact({"type": "user", "uuid": "end", "parentUuid": None, "message": {"content": "end"}})
    save(projects, CWD, ID, deep + torn + records + last)

    assert [message.content for message in get_session_messages(ID)] == ["end"]
    assert get_session_messages(ID, branch="cli") == get_session_messages(ID)
