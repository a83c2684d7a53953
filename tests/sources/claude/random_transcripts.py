"""Random transcripts with everything that happens to real ones: branches, tools side by side, compactions, repeats."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.claude.transcripts import Writer

SESSION = "3d2a7a53-93a1-4b59-9f53-6a1b1d8a9f10"


def writer(seed: int = 7) -> Writer:
    """A writer of a transcript that begins with nothing."""
    return Writer(SESSION, rng=random.Random(seed))


def random_transcript(seed: int, steps: int, *, usual: bool = False) -> bytes:
    """A transcript of so many random steps; `usual` ones leave out what readers differ on."""
    made = writer(seed)
    for _ in range(steps):
        made.rng.choice(USUAL if usual else STEPS)(made)
    return made.data()


def _uuids(made: Writer) -> list[str]:
    return [record["uuid"] for record in made.records if record.get("uuid")]


def _earlier(made: Writer, far: int = 1_000) -> str | None:
    """Some record's uuid, among the last `far`."""
    found = _uuids(made)[-far:]
    return made.rng.choice(found) if found else None


def _word(made: Writer) -> str:
    return f"word {made.rng.randrange(1000)}"


def _ask(made: Writer) -> None:
    made.user(_word(made))


def _answer(made: Writer) -> None:
    made.say(_word(made))


def _use_tool(made: Writer) -> None:
    _, call = made.call("Bash", {"command": _word(made)})
    made.result(call, _word(made))


def _blocks_and_results_in_turn(made: Writer) -> None:
    """An answer whose tools run while it is being written."""
    response = f"msg_{made.rng.getrandbits(32):x}"
    for _ in range(made.rng.randrange(1, 4)):
        _, call = made.call("Read", {"file_path": _word(made)}, message_id=response)
        made.result(call, _word(made))


def _side_by_side(made: Writer) -> None:
    """An answer with several calls, whose results come in any order; each hangs from its own call."""
    response = f"msg_{made.rng.getrandbits(32):x}"
    calls = [made.call("Read", {"file_path": _word(made)}, message_id=response) for _ in range(3)]
    made.rng.shuffle(calls)
    for block, call in calls[: made.rng.randrange(1, 4)]:
        made.result(call, _word(made), parentUuid=block["uuid"], sourceToolAssistantUUID=block["uuid"])
        if made.rng.random() < 0.3:
            made.attach("queued_command", prompt=_word(made))
    if made.rng.random() < 0.3:
        made.last = _earlier(made, 4)


def _go_back(made: Writer) -> None:
    made.last = _earlier(made)


def _go_back_a_little(made: Writer) -> None:
    made.last = _earlier(made, 6)


def _begin_anew(made: Writer) -> None:
    made.user(_word(made), parentUuid=None)


def _lose_the_parent(made: Writer) -> None:
    made.user(_word(made), parentUuid="nobody")


def _name_the_leaf(made: Writer) -> None:
    made.last_prompt(_word(made))


def _name_some_leaf(made: Writer) -> None:
    made.last_prompt(leaf=made.rng.choice([_earlier(made), _earlier(made, 5), "nobody", None]))


def _write_again(made: Writer) -> None:
    linked = [record for record in made.records if record.get("uuid")]
    if linked:
        made.records.append(made.rng.choice(linked))


def _compact(made: Writer) -> None:
    kept = _uuids(made)[-made.rng.randrange(1, 5) :] if made.rng.random() < 0.5 else None
    made.compact(keep=kept)
    if kept and made.rng.random() < 0.5:
        made.last = kept[-1]


def _summarize(made: Writer) -> None:
    if later := made.line_to(made.last)[1:]:
        made.summarize(made.rng.choice(["from", "up_to"]), made.rng.choice(later[-4:]))


def _hang(made: Writer) -> None:
    made.attach(made.rng.choice(["skill_listing", "queued_command", "of a new kind"]), prompt=_word(made))


def _hang_elsewhere(made: Writer) -> None:
    tip = made.last
    made.link("system", subtype="informational", content=_word(made), parentUuid=_earlier(made, 5))
    made.last = tip


def _progress(made: Writer) -> None:
    made.link("progress", data={"hook": 1})


def _meta(made: Writer) -> None:
    made.user(f"<system-reminder>{_word(made)}</system-reminder>", isMeta=made.rng.random() < 0.7)


def _aside(made: Writer) -> None:
    tip = made.last
    made.user(_word(made), isSidechain=True, agentId="a1")
    made.last = tip


def _describe(made: Writer) -> None:
    made.rng.choice([made.title, made.ai_title, made.tag])(_word(made))


def _something_new(made: Writer) -> None:
    made.link("of-a-new-kind", value=_word(made))
    made.note("about-new-things", value=_word(made))


def _without_time(made: Writer) -> None:
    made.user(_word(made), timestamp=None)


STEPS: list[Callable[[Writer], None]] = [
    _ask, _ask, _answer, _answer, _use_tool, _use_tool, _blocks_and_results_in_turn, _blocks_and_results_in_turn,
    _side_by_side, _side_by_side, _go_back, _go_back_a_little, _begin_anew, _lose_the_parent, _name_the_leaf,
    _name_some_leaf, _write_again, _compact, _summarize, _hang, _hang_elsewhere, _progress, _meta, _aside, _describe,
    _something_new, _without_time,
]  # fmt: skip
_ODD = (_write_again, _something_new, _compact, _summarize, _aside, _meta, _lose_the_parent)
USUAL = [step for step in STEPS if step not in _ODD]
