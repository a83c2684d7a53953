"""What somebody sees who runs the trials, and what is recorded of them."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from supply.pins import ROOT
from tests.support.waits import LIMIT, is_set
from torture.__main__ import main
from torture.rows import GROUPS
from torture.trial import disks, needs, progress, report, results
from torture.trial.needs import Need
from torture.trial.results import Recorded
from torture.trial.row import Outcome, Row, Setting

Trial = Callable[[Setting], Outcome]


def good(setting: Setting) -> Outcome:
    setting.say("half\nall")
    return Outcome(met=True, figure="7 tried", counts={"faults": 7})


def bad(_: Setting) -> Outcome:
    return Outcome(met=False, figure="3 of 7 lost")


def breaking_off(_: Setting) -> Outcome:
    raise RuntimeError("no such program")


def interrupted(_: Setting) -> Outcome:
    raise KeyboardInterrupt


def groups(
    run: Trial = good, control: Trial = bad, *, need: Need | None = None
) -> dict[str, tuple[Row, ...]]:
    of = Row(
        key="X1",
        promise="it holds",
        target="t",
        how="h",
        run=run,
        control=control,
        broken="b",
        needs=(need,) if need else (),
    )
    return {"Group": (of,)}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    return tmp_path


@pytest.fixture
def once_met() -> Recorded:
    assert main([], groups()) == 0
    return results.load()["X1"]


def test_each_line_says_which_row_it_is_of_and_how_long_that_took_the_last_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([], groups()) == 0
    assert capsys.readouterr().out.startswith("X1  begins (never timed, 1 of 1)\n")
    results.record("X1", msgspec.structs.replace(results.load()["X1"], seconds=4_800))
    assert main([], groups()) == 0
    assert capsys.readouterr().out.splitlines() == [
        "X1  begins (about 80 min, 1 of 1)",
        "X1  half",
        "X1  all",
        "X1  met: 7 tried  [0 s]",
        "X1  control begins, broken on purpose: b",
        "X1  control: 3 of 7 lost",
    ]


def test_a_long_trial_is_heard_of() -> None:
    heard: list[str] = []
    twice = threading.Event()

    def hear(line: str) -> None:
        heard.append(line)
        if len(heard) == 2:
            twice.set()

    with progress.ticking(hear, pause=0.001):
        is_set(twice, "two lines")
    assert heard[0].startswith("at work for ")
    assert "progress" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (119, "119 s"), (4_800, "80 min"), (25_200, "7.0 h")]
)
def test_a_time_is_told_as_exactly_as_a_waiting_person_needs_it(seconds: float, words: str) -> None:
    assert progress.duration(seconds) == words


def test_the_list_tells_what_each_row_needs_and_took_and_tries_nothing(
    once_met: Recorded, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    capsys.readouterr()
    assert main(["--list"], groups(breaking_off, need=Need("a telescope", lambda: False))) == 0
    told = capsys.readouterr().out
    assert "it holds" in told
    assert "LACKING: a telescope" in told
    assert f"the 1 of 1 rows that are recorded took {progress.duration(once_met.seconds)} together" in told


def test_the_help_tells_the_time_of_all_rows_and_that_packages_are_installed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"], groups())
    told = " ".join(capsys.readouterr().out.split())
    assert "took 0 s together" in told
    assert "installed with apt-get" in told


def test_an_interrupt_ends_without_a_record_or_a_traceback(
    once_met: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main([], groups(interrupted)) == 130
    assert capsys.readouterr().out == "X1  begins (about 0 s, 1 of 1)\nended; nothing recorded for X1\n"
    assert results.load() == {"X1": once_met}


@pytest.mark.parametrize(("run", "control"), [(breaking_off, bad), (good, breaking_off)])
def test_what_broke_off_never_takes_the_place_of_what_came_to_its_end(
    once_met: Recorded, run: Trial, control: Trial, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], groups(run, control)) == 1
    assert "not recorded: what was found at unknown stays" in capsys.readouterr().out
    assert results.load() == {"X1": once_met}


def test_what_was_missed_is_recorded_even_if_its_control_broke_off() -> None:
    assert main([], groups()) == 0
    assert main([], groups(bad, breaking_off)) == 1
    assert results.load()["X1"].figure == "3 of 7 lost"


def test_what_broke_off_is_replaced_by_what_came_to_its_end() -> None:
    assert main([], groups(breaking_off)) == 1
    assert results.load()["X1"].broke_off
    assert main([], groups()) == 0
    assert not results.load()["X1"].broke_off


def test_a_row_is_not_tried_where_the_machine_refuses_what_it_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    need = Need("the right to mount", lambda: True, refused=lambda: "mount: permission denied")
    assert main([], groups(need=need)) == 1
    assert capsys.readouterr().out == (
        "X1  not tried here: needs the right to mount (mount: permission denied)\n"
    )
    assert results.load() == {}


def test_what_the_machine_refuses_is_asked_once_and_told_in_its_words() -> None:
    asked: list[Path] = []

    def attempt(folder: Path) -> None:
        asked.append(folder)
        disks.run("ls", str(folder / "nothing"))

    answer = needs._once(attempt)
    assert answer() == answer()
    assert "ls" in answer()
    assert "No such file" in answer()
    assert len(asked) == 1
    assert not asked[0].exists()


def test_a_package_is_named_before_it_is_installed_and_what_went_wrong_is_told(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer = place / "apt-get"
    installer.write_text("#!/bin/sh\necho no such package >&2\nexit 100\n")
    installer.chmod(0o700)
    monkeypatch.setenv("PATH", str(place))
    heard: list[str] = []
    needs._install("telescope", heard.append)
    assert heard == [
        "installs a package that it needs: apt-get install --yes --quiet --no-install-recommends telescope",
        "telescope could not be installed: no such package",
    ]


def test_nothing_is_installed_for_a_row_that_cannot_be_tried_anyway() -> None:
    heard: list[str] = []
    wanted = (
        Need("a telescope", lambda: False, ("telescope",)),
        Need("a clear sky", lambda: False),
    )
    assert needs.supplied(wanted, heard.append) == ["a telescope", "a clear sky"]
    assert heard == []


@pytest.mark.parametrize("file", ["src", "torture", "tests", "bench", "supply"])
def test_a_change_of_any_code_that_trials_run_is_told_with_the_commit(place: Path, file: str) -> None:
    assert results.commit() == "unknown"
    (place / file).mkdir()
    (place / file / "code.py").write_text("one")
    for words in ("init -q", "add .", "-c user.name=n -c user.email=e@e commit -q -m first"):
        subprocess.run(["git", *words.split()], check=True, timeout=LIMIT)  # noqa: S607
    assert not results.commit().endswith("+")
    (place / file / "code.py").write_text("two")
    assert results.commit().endswith("+")
    assert results.measured("abc", "abd") == "abc+"


def test_a_record_from_before_days_and_machines_were_kept_is_still_read() -> None:
    results.STORE.parent.mkdir(parents=True)
    results.STORE.write_text(
        '{"X1": {"figure": "f", "met": true, "control": "c", "counts": true, "sums": {}, "seed": 1,'
        ' "commit": "abc", "seconds": 2.5}}'
    )
    page = report.page(groups(), results.load())
    assert "The machine and the date of these trials were not recorded." in page
    assert "- *Trial*: seed 1, commit `abc`, 2 s" in page


def test_the_page_begins_with_the_machine_the_count_and_the_sums(
    once_met: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path("docs/scorecard.md").read_text(encoding="utf-8")
    for part in ("cores", "GB of memory", "Python 3", "SQLite 3", "PostgreSQL 1", "files on"):
        assert part in once_met.machine
    head = page[: page.index("| row |")]
    assert f"{once_met.machine}. The newest trial is from {once_met.date}." in head
    assert "**1 of 1 rows met, 0 missed, 0 not run.**" in head
    assert "**7 faults injected, 0 hostile inputs, 0 acknowledged messages, 0 lost, 0 leaked.**" in head
    assert "| [X1](#x1) | It holds | met | 7 faults |" in page
    capsys.readouterr()
    Path("docs/scorecard.md").unlink()
    assert main(["--page"], groups()) == 0
    assert "**7 faults injected" in capsys.readouterr().out
    assert Path("docs/scorecard.md").read_text(encoding="utf-8") == page


def test_the_page_of_all_rows_can_be_written_from_what_is_recorded() -> None:
    page = report.page(GROUPS, results.load(ROOT / results.STORE))
    for group in GROUPS.values():
        for row in group:
            assert f"\n### {row.key}\n" in page
