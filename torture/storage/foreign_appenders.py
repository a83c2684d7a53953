"""Other programs append to a transcript while ours does, and all are killed: everyone's lines are there."""

from __future__ import annotations

from tests.claude.many_writers import begun, left, one_life
from torture.trial.program import Environment
from torture.trial.row import Outcome, Setting

LIVES = 5
"""Of one transcript; the next one begins anew."""


def run_trial(setting: Setting, environment: Environment) -> Outcome:
    """Transcripts, each with several generations of writers."""
    found = []
    for number in range(setting.of(short=1, full=10)):
        home = setting.folder / f"claude-{number}"
        path = begun(home)
        lives = [
            one_life(home, path, life, setting.of(short=40, full=100), environment)
            for life in range(setting.of(short=1, full=LIVES))
        ]
        found.append(left(path, lives))
        path.unlink()
    acknowledged, kills = sum(each.acknowledged for each in found), sum(each.kills for each in found)
    lost, changed = sum(each.ours_lost for each in found), sum(each.theirs_changed for each in found)
    figure = (
        f"{acknowledged:,} lines acknowledged by 8 others and 2 of ours, {kills} kills: {lost} of ours lost, "
        f"{changed} of theirs changed"
    )
    counts = {"faults": kills, "acknowledged": acknowledged, "lost": lost + changed}
    return Outcome(met=not lost and not changed, figure=figure, counts=counts)
