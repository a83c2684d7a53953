"""Break the code on purpose and see the tests notice: `python -m tests.mutants [--only NAME]`.

Each breakage is put into a copy of the sources in a temporary folder, and the test that guards against it must fail
there. Before that, all these tests must pass on a copy that is whole. The exit code is 1 if a breakage goes unnoticed
or its text is no longer in the sources. The rows of the scorecard have breakages of their own, their controls: with
each of them the row's trial must fail, in its short form.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.mutants import MUTANTS, NOTICED, verdicts
from tests.mutants.controls import CONTROLS, control_verdicts
from tests.mutants.runner import tell


def main() -> int:
    """Try the chosen breakages; 1 if one goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*(mutant.name for mutant in MUTANTS), *CONTROLS]
    parser.add_argument("--only", metavar="NAME", help="try one breakage alone", choices=names)
    only = parser.parse_args().only
    chosen = [mutant for mutant in MUTANTS if only in (None, mutant.name)]
    controls = [name for name in CONTROLS if only in (None, name)]
    with tempfile.TemporaryDirectory(prefix="hitherto-mutants-") as folder:
        found = verdicts(Path(folder, "copy"), chosen) if chosen else {}
        found |= control_verdicts(Path(folder), controls)
    survivors = [name for name, verdict in found.items() if verdict != NOTICED]
    tell("\n  ".join([f"{len(found) - len(survivors)} of {len(found)} noticed", *survivors]))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
