"""Forks: what was said in a session is said in its fork, for the SDK, for the command line's rules and for us."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import claude_agent_sdk as sdk
import pytest

from hitherto.claude.fork import fork_session
from hitherto.claude.list import get_session_info
from hitherto.claude.messages import check_session, get_session_messages
from tests.claude.transcripts import Record, Writer, compact, large, save, session_id
from tests.support.waits import LIMIT

ID = session_id(1)
CWD = "/home/ann/project"
UNKNOWN = "00000000-0000-4000-8000-00000000dead"


@pytest.fixture
def writer() -> Writer:
    return Writer(ID, CWD)


def said(name: str, **options: Any) -> list[Any]:
    """What our reader shows of a session."""
    return [message.message["content"] for message in get_session_messages(name, **options)]


def said_to_sdk(name: str) -> list[Any]:
    return [message.message["content"] for message in sdk.get_session_messages(name)]


def records(projects: Path, name: str) -> list[Record]:
    """The records of a session, read as strictly as can be."""
    (path,) = projects.glob(f"*/{name}.jsonl")
    data = path.read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.decode().split("\n")[:-1]]


def normal(found: list[Record]) -> list[Record]:
    """Records with what is new in each fork replaced by when it first appeared."""
    names: dict[str, str] = {}
    source = {record["forkedFrom"]["messageUuid"] for record in found if "forkedFrom" in record}

    def renamed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {inner: renamed(item, inner) for inner, item in value.items()}
        if key in ("uuid", "parentUuid", "logicalParentUuid", "sessionId") and isinstance(value, str):
            return names.setdefault(value, f"new {len(names)}") if value not in source else value
        return "now" if key == "timestamp" and value >= "2026-11" else value

    return [renamed({**record, "forkedFrom": None}) | {"from": record.get("forkedFrom")} for record in found]


def talk(writer: Writer, *, turns: int = 3) -> list[Record]:
    made = []
    for number in range(turns):
        made += [writer.user(f"question {number}"), writer.say(f"answer {number}")]
    return made


# Equal to the SDK's, where that is right


def branching(seed: int) -> Writer:
    """A transcript with everything that the SDK's fork handles: branches, progress, subagents, notes, tools."""
    rng = random.Random(seed)
    writer = Writer(ID, CWD, rng=rng)
    made = [writer.user("begin")]
    steps: list[Callable[[], Record]] = [
        lambda: writer.user(f"ask {rng.random()}", isMeta=rng.random() < 0.2),
        lambda: writer.say("say \U0001f600 é"),
        lambda: writer.link("progress", data={"n": 1}),
        lambda: writer.link(
            "system", subtype="informational", content="note", logicalParentUuid=made[0]["uuid"]
        ),
        lambda: writer.attach("date", value="today"),
        lambda: writer.user("team", teamName="t", agentName="a", slug="s"),
        lambda: writer.result("toolu_1", "out", sourceToolAssistantUUID=made[0]["uuid"]),
        lambda: writer.note("content-replacement", replacements=[rng.random()]),
        lambda: writer.note("mode", mode="plan"),
        lambda: writer.ai_title("made up"),
    ]
    for _ in range(rng.randrange(1, 40)):
        if rng.random() < 0.2:
            writer.last = rng.choice(made)["uuid"]
        done = rng.choice(steps)()
        if "uuid" in done:
            made.append(done)
    return writer


@pytest.mark.parametrize("seed", range(60))
def test_a_fork_has_the_records_of_the_sdks_fork(projects: Path, seed: int) -> None:
    writer = branching(seed)
    path = writer.save(projects)
    before = path.read_bytes()
    ours, theirs = fork_session(ID, CWD), sdk.fork_session(ID, CWD)
    assert path.read_bytes() == before
    mine = normal(records(projects, ours.session_id))
    assert [record for record in mine if record["type"] != "last-prompt"] == normal(
        records(projects, theirs.session_id)
    )
    assert said_to_sdk(ours.session_id) == said_to_sdk(theirs.session_id)
    # What a team said is nobody's in particular in a fork.
    if not any("teamName" in record for record in writer.records):
        assert said(ours.session_id) == said(ID) == said_to_sdk(ID)
    assert said(ours.session_id, branch="cli") == said(ours.session_id)


@pytest.mark.parametrize("seed", range(60, 90))
def test_a_fork_up_to_a_message_has_the_records_of_the_sdks_fork(projects: Path, seed: int) -> None:
    writer = branching(seed)
    writer.save(projects)
    links = [record for record in writer.records if "uuid" in record]
    for chosen in random.Random(seed).sample(links, min(4, len(links))):
        ours = fork_session(ID, up_to_message_id=chosen["uuid"], title=" mine ")
        theirs = sdk.fork_session(ID, up_to_message_id=chosen["uuid"], title=" mine ")
        mine = normal(records(projects, ours.session_id))
        assert [one for one in mine if one["type"] != "last-prompt"] == normal(
            records(projects, theirs.session_id)
        )
        assert said_to_sdk(ours.session_id) == said_to_sdk(theirs.session_id)


def test_a_subagents_records_in_the_transcript_are_left_out(projects: Path, writer: Writer) -> None:
    first = writer.user("ask")
    writer.user("inside", isSidechain=True, parentUuid=None)
    writer.say("also inside", isSidechain=True)
    writer.say("answer", parentUuid=first["uuid"])
    writer.save(projects)
    ours, theirs = fork_session(ID), sdk.fork_session(ID)
    assert [
        record for record in normal(records(projects, ours.session_id)) if record["type"] != "last-prompt"
    ] == (normal(records(projects, theirs.session_id)))


@pytest.mark.parametrize("title", [None, "", "  ", " Mine ", "Ü\u2028\ud800"])
@pytest.mark.parametrize("named", ["custom", "ai", "prompt", "command", "nothing"])
def test_a_fork_is_titled_as_by_the_sdk(
    projects: Path, writer: Writer, title: str | None, named: str
) -> None:
    writer.user("<command-name>/init</command-name>" if named in ("command", "nothing") else "Paint the barn")
    if named == "nothing":
        writer.records[0]["message"]["content"] = [{"type": "image"}]
    writer.say("Red?")
    if named in ("custom", "ai"):
        writer.ai_title("made up")
    if named == "custom":
        writer.title("given")
    writer.save(projects)
    ours, theirs = fork_session(ID, title=title).session_id, sdk.fork_session(ID, title=title).session_id
    assert records(projects, ours)[-1]["customTitle"] == records(projects, theirs)[-1]["customTitle"]
    info = get_session_info(ours)
    assert info is not None
    assert info.custom_title == records(projects, theirs)[-1]["customTitle"]


# Right where the SDK's is not


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1e", "\r"])
def test_a_message_with_a_character_that_ends_lines_elsewhere_survives(
    projects: Path, writer: Writer, mark: str
) -> None:
    writer.user(f"one{mark}two")
    writer.say(f"three{mark}four")
    writer.save(projects)
    fork = fork_session(ID).session_id
    assert said(fork) == said(ID)
    assert len(said(fork)) == 2


def compacted(writer: Writer, *, keep: int) -> list[Record]:
    """A conversation that was compacted with its last messages kept, and went on; returns the kept ones."""
    made = talk(writer)
    kept = made[-keep:]
    writer.compact(keep=[record["uuid"] for record in kept])
    talk(writer, turns=1)
    return kept


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_messages_that_a_compaction_kept_survive(projects: Path, writer: Writer, keep: int) -> None:
    compacted(writer, keep=keep)
    writer.save(projects)
    fork = fork_session(ID).session_id
    assert said(fork) == said(ID)
    assert len(said(fork)) == 1 + keep + 2
    assert said(fork, branch="cli") == said(ID, branch="cli")
    found = records(projects, fork)
    (told,) = [record["compactMetadata"] for record in found if "compactMetadata" in record]
    own = {record.get("uuid") for record in found}
    named = [*told["preservedSegment"].values(), told["preservedMessages"]["anchorUuid"]]
    named += told["preservedMessages"]["uuids"] + told["preservedMessages"]["allUuids"]
    assert set(named) <= own
    assert (told["trigger"], told["preTokens"]) == ("manual", 90_000)


@pytest.mark.parametrize("segment_only", [False, True])
def test_a_compacted_session_can_be_forked_at_each_of_its_messages(
    projects: Path, writer: Writer, segment_only: bool
) -> None:
    compacted(writer, keep=3)
    for record in writer.records:
        if segment_only and "compactMetadata" in record:
            del record["compactMetadata"]["preservedMessages"]
    writer.save(projects)
    shown = get_session_messages(ID)
    assert len(shown) == 6
    for number, message in enumerate(shown, 1):
        fork = fork_session(ID, up_to_message_id=message.uuid).session_id
        expected = [one.message["content"] for one in shown[:number]]
        assert said(fork) == expected
        assert said(fork, branch="cli") == expected


def test_a_message_from_before_a_compaction_gives_the_conversation_of_that_time(
    projects: Path, writer: Writer
) -> None:
    compacted(writer, keep=2)
    writer.save(projects)
    fork = fork_session(ID, up_to_message_id=writer.records[1]["uuid"]).session_id
    assert said(fork) == ["question 0", [{"type": "text", "text": "answer 0"}]]


def test_a_link_whose_parent_was_lost_goes_on_from_what_was_written_before(
    projects: Path, writer: Writer
) -> None:
    made = talk(writer)
    lost = writer.data().replace(compact(made[2]), compact(made[2])[:50] + b"\n")
    save(projects, CWD, ID, lost)
    assert len(said(ID)) == 5
    fork = fork_session(ID).session_id
    assert said(fork) == said(fork, branch="cli") == said(ID)
    assert said_to_sdk(fork) == said(ID)


def test_links_in_any_order_keep_their_parents(projects: Path, writer: Writer) -> None:
    made = talk(writer)
    made += [writer.link("progress", data=1), writer.user("after progress"), writer.say("the end")]
    for seed in range(10):
        shuffled = random.Random(seed).sample(made, len(made))
        save(projects, CWD, ID, b"".join(map(compact, shuffled)))
        fork = fork_session(ID).session_id
        found = [record for record in records(projects, fork) if "forkedFrom" in record]
        old = {record["uuid"]: record["forkedFrom"]["messageUuid"] for record in found}
        parents = {old[record["uuid"]]: old.get(record["parentUuid"]) for record in found}
        expected = {record["uuid"]: record["parentUuid"] for record in made if record["type"] != "progress"}
        expected[made[-2]["uuid"]] = made[-4]["uuid"]
        assert parents == expected


def test_circles_end(projects: Path, writer: Writer) -> None:
    first = writer.link("progress", data=1, parentUuid=UNKNOWN)
    second = writer.link("progress", data=2)
    first["parentUuid"] = second["uuid"]
    ask = writer.user("ask")
    answer = writer.say("answer")
    self_made = writer.user("mine", parentUuid=UNKNOWN)
    self_made["parentUuid"] = self_made["uuid"]
    ask2 = writer.user("ask2", parentUuid=answer["uuid"])
    writer.records.append({**ask, "parentUuid": ask2["uuid"]})
    writer.save(projects)
    found = [record for record in records(projects, fork_session(ID).session_id) if "forkedFrom" in record]
    assert len(found) == 5
    assert found[2]["parentUuid"] == found[2]["uuid"]


def test_records_with_one_uuid_stay_records_with_one_uuid(projects: Path, writer: Writer) -> None:
    talk(writer)
    writer.records.append({**writer.records[-1], "message": {"role": "assistant", "content": "changed"}})
    writer.save(projects)
    fork = fork_session(ID).session_id
    found = records(projects, fork)
    assert found[5]["uuid"] == found[6]["uuid"]
    assert said(fork) == said(ID)


# Damage


def damaged(writer: Writer) -> bytes:
    made = talk(writer, turns=5)
    lines = [compact(record) for record in made]
    lines[0] = b"\xef\xbb\xbf" + lines[0]
    lines[1] = lines[1].replace(b"answer 0", b"answer \xff\xc3")
    lines[3] = b"\0" * 5_000 + lines[3]
    lines[5] = lines[5][:40] + lines[5]
    lines[6] = lines[6].rstrip() + lines[7]
    lines[7] = b"[1]\n\n7\n\r\n"
    return b"".join(lines) + b'{"type":"user","uuid":"to'


def test_every_intact_record_of_a_damaged_transcript_is_in_its_fork_which_is_whole(
    projects: Path, writer: Writer
) -> None:
    path = save(projects, CWD, ID, damaged(writer))
    before = path.read_bytes()
    fork = fork_session(ID).session_id
    assert said(fork) == said(ID)
    assert len(said(fork)) == 10
    assert check_session(ID)
    assert not check_session(fork)
    assert said_to_sdk(fork) == said(fork)
    assert path.read_bytes() == before


def test_values_that_are_not_as_they_should_be_are_copied(projects: Path, writer: Writer) -> None:
    writer.user("lone \ud800", extra=2**70, nan=float("nan"))
    writer.say("answer", timestamp=None, isSidechain=0, agentId=None)
    writer.user("ask", parentUuid=writer.last, compactMetadata=[1], logicalParentUuid=7)
    writer.records.append({"type": "user", "uuid": 7})
    writer.records.append({"type": ["user"], "uuid": "x"})
    writer.records.append({"type": "content-replacement", "replacements": 1, "sessionId": ID})
    data = b"".join(json.dumps(record).encode() + b"\n" for record in writer.records)
    save(projects, CWD, ID, data)
    found = records(projects, fork_session(ID).session_id)
    assert found[0]["message"]["content"] == "lone \ud800"
    assert found[0]["extra"] == 2**70
    assert found[1]["timestamp"] > "2026"
    assert [record["type"] for record in found] == [
        "user",
        "assistant",
        "user",
        "last-prompt",
        "custom-title",
    ]


# Where the command line goes on


def two_branches(writer: Writer) -> tuple[Record, Record]:
    """A conversation that went on twice; the end of each."""
    talk(writer, turns=1)
    fork = writer.last
    writer.user("one")
    one = writer.say("end of one")
    writer.last = fork
    writer.user("two")
    return one, writer.say("end of two")


def test_the_command_line_resumes_the_branch_that_is_shown(projects: Path, writer: Writer) -> None:
    one, _ = two_branches(writer)
    writer.last_prompt("one", one["uuid"])
    writer.save(projects)
    assert said(ID)[-2] == "two"
    assert said(ID, branch="cli")[-2] == "one"
    fork = fork_session(ID).session_id
    assert said(fork) == said(fork, branch="cli") == said(ID)


def test_a_fork_of_the_command_lines_branch_is_resumed_there(projects: Path, writer: Writer) -> None:
    one, _ = two_branches(writer)
    writer.last_prompt("one", one["uuid"])
    writer.save(projects)
    fork = fork_session(ID, branch="cli").session_id
    assert said(fork, branch="cli") == said(ID, branch="cli")
    assert said(fork) == said(ID)


def test_a_fork_of_a_branch_that_the_command_line_cleared_is_cleared(projects: Path, writer: Writer) -> None:
    talk(writer)
    writer.note("last-prompt", leafUuid=None, explicit=True)
    writer.save(projects)
    assert said(fork_session(ID, branch="cli").session_id, branch="cli") == said(ID, branch="cli") == []
    assert said(fork_session(ID).session_id, branch="cli") == said(ID)


def test_the_leaf_has_a_time_and_the_last_prompt_names_it(projects: Path, writer: Writer) -> None:
    made = talk(writer)
    for record in made:
        del record["timestamp"]
    writer.attach("date", value="today")
    writer.save(projects)
    found = records(projects, fork_session(ID).session_id)
    (told,) = [record for record in found if record["type"] == "last-prompt"]
    assert told["leafUuid"] == found[5]["uuid"]
    assert all(record["timestamp"] > "2026" for record in found[:7])


def test_what_the_program_put_in_at_last_is_not_where_the_command_line_goes_on(
    projects: Path, writer: Writer
) -> None:
    begun = talk(writer)[1]
    writer.user("put in", isMeta=True, parentUuid=begun["uuid"])
    writer.save(projects)
    fork = fork_session(ID).session_id
    assert said(fork) == said(fork, branch="cli") == said(ID)
    assert len(said(fork)) == 6


def test_replaced_contents_come_along_in_one_record_but_not_those_of_another_session(
    projects: Path, writer: Writer
) -> None:
    talk(writer)
    writer.note("content-replacement", replacements=[1, 2])
    writer.records.append({"type": "content-replacement", "replacements": [3], "sessionId": UNKNOWN})
    writer.note("content-replacement", replacements=[4])
    writer.save(projects)
    for fork in (fork_session(ID).session_id, sdk.fork_session(ID).session_id):
        found = [record for record in records(projects, fork) if record["type"] == "content-replacement"]
        assert [(record["replacements"], record["sessionId"]) for record in found] == [([1, 2, 4], fork)]


def test_what_holds_for_the_fork_too_comes_along_with_its_new_id(projects: Path, writer: Writer) -> None:
    talk(writer)
    for kind in ("relocated", "relocated", "tools-used", "cost-state", "tag", "agent-name"):
        writer.note(kind, relocatedCwd="/elsewhere", tag="later")
    writer.save(projects)
    fork = fork_session(ID).session_id
    notes = [record for record in records(projects, fork) if "forkedFrom" not in record]
    assert [record["type"] for record in notes] == ["relocated", "tools-used", "last-prompt", "custom-title"]
    assert {record["sessionId"] for record in notes} == {fork}
    info = get_session_info(fork)
    assert info is not None
    assert (info.cwd, info.tag) == ("/elsewhere", None)


# The new file


def test_the_fork_is_a_private_file_beside_its_source(projects: Path, writer: Writer) -> None:
    talk(writer)
    path = writer.save(projects)
    mask = os.umask(0)
    try:
        fork = fork_session(ID).session_id
    finally:
        os.umask(mask)
    assert sorted(found.name for found in path.parent.iterdir()) == sorted([f"{ID}.jsonl", f"{fork}.jsonl"])
    assert stat.S_IMODE((path.parent / f"{fork}.jsonl").stat().st_mode) == 0o600


def test_no_uuid_is_used_twice(projects: Path, writer: Writer) -> None:
    talk(writer)
    writer.save(projects)
    forks = [fork_session(ID).session_id for _ in range(3)]
    forks.append(fork_session(forks[0]).session_id)
    uuids = [
        record["uuid"] for name in [ID, *forks] for record in records(projects, name) if "uuid" in record
    ]
    assert len(uuids) == len(set(uuids))
    assert all(sdk.get_session_info(name) is not None for name in forks)


def test_a_fork_that_does_not_fit_on_the_disk_leaves_nothing(projects: Path) -> None:
    name = large(projects, 1_000_000)
    (path,) = projects.glob("*/*.jsonl")
    code = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        f"from hitherto.claude.fork import fork_session; fork_session({name!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=LIMIT
    )
    assert "OSError" in done.stderr
    assert list(path.parent.iterdir()) == [path]


# The peak that Linux tells of a process by getrusage is also that of the process which started it.
PEAK = """
import re, resource
from pathlib import Path
from hitherto.claude.fork import fork_session

def peak():
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\\s*(\\d+) kB", status.read_text()).group(1)) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

used = peak()
"""


@pytest.mark.parametrize("part", [False, True])
def test_a_fork_takes_little_memory_however_large_the_session(projects: Path, part: bool) -> None:
    name = large(projects, 60_000_000)
    first = next(record["uuid"] for record in records(projects, name) if "uuid" in record)
    code = f"{PEAK}fork_session({name!r}, None, {first if part else None!r})\nprint(peak() - used)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LIMIT
    )
    assert int(done.stdout) < 25_000_000


def test_a_huge_hole_in_a_transcript_takes_no_memory(projects: Path, writer: Writer) -> None:
    talk(writer)
    path = writer.save(projects)
    os.truncate(path, 256 << 20)
    with path.open("ab") as file:
        file.write(b"\n" + compact(writer.user("after the hole")))
    code = f"{PEAK}print(fork_session({ID!r}).session_id, peak() - used)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=LIMIT
    )
    fork, grown = done.stdout.split()
    assert int(grown) < 25_000_000
    assert len(said(fork)) == 7


# Input that is no good


def failure(fork: Callable[..., object], *arguments: object) -> tuple[type[BaseException], str]:
    with pytest.raises((ValueError, OSError)) as caught:
        fork(*arguments)
    return caught.type, str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("../" + ID,),
        (ID, None, "nonsense"),
        (ID, CWD, UNKNOWN),
        (UNKNOWN,),
        (UNKNOWN, CWD),
        (ID, "/elsewhere"),
    ],
)
def test_what_cannot_be_forked_is_refused_as_by_the_sdk(
    projects: Path, writer: Writer, arguments: tuple[object, ...]
) -> None:
    talk(writer)
    path = writer.save(projects)
    assert failure(fork_session, *arguments) == failure(sdk.fork_session, *arguments)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "data",
    [
        b"\n",
        b"nonsense",
        compact({"type": "custom-title", "customTitle": "x"}),
        compact({"type": "user", "uuid": "a", "isSidechain": True}),
        compact({"type": "progress", "uuid": UNKNOWN}),
    ],
)
@pytest.mark.parametrize("up_to", [None, UNKNOWN])
def test_a_session_without_messages_is_refused_as_by_the_sdk(
    projects: Path, data: bytes, up_to: str | None
) -> None:
    path = save(projects, CWD, ID, data)
    assert failure(fork_session, ID, None, up_to) == failure(sdk.fork_session, ID, None, up_to)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/passwd"), os.mkfifo, Path.mkdir])
def test_links_pipes_and_folders_are_not_forked(projects: Path, make: Callable[[Path], object]) -> None:
    folder = projects / "-home-ann-project"
    folder.mkdir()
    make(folder / f"{ID}.jsonl")
    for directory in (None, CWD):
        assert failure(fork_session, ID, directory)[0] is FileNotFoundError
    assert len(list(folder.iterdir())) == 1
