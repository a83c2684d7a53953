"""`python -m bench`: measures the chosen parts and writes the page."""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from pathlib import Path

PART_NAMES = (
    "append",
    "history",
    "list",
    "checks",
    "search",
    "postgres",
    "import",
    "claude-files",
    "claude-forks",
    "sync",
    "agentsview",
    "turns",
    "acp",
    "proxy",
    "load",
    "page",
    "housekeeping",
    "origins",
)
PAGE = Path("docs/benchmarks.md")


def arguments(words: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument(
        "--only", choices=PART_NAMES, action="append", metavar="PART", help=", ".join(PART_NAMES)
    )
    parser.add_argument("--out", type=Path, help=f"the page to write (a whole, full run writes {PAGE})")
    parser.add_argument("--folder", type=Path, help="where the temporary databases go (a real disk)")
    return parser.parse_args(words)


def main(words: list[str]) -> int:
    """Measure, show, write; 1 if a promise was missed."""
    # Imported here because every contender's process imports this module first.
    from rich.console import Console

    from bench.contenders import HITHERTO, PEERS, RAW
    from bench.harness import machine, report
    from bench.harness.progress import shown
    from bench.harness.results import failed
    from bench.harness.sizes import FULL, QUICK
    from bench.parts import PARTS

    chosen = arguments(words)
    console = Console()
    with tempfile.TemporaryDirectory(dir=chosen.folder, prefix="bench") as name, shown(console) as meter:
        folder = Path(name)
        facts = machine.facts(folder)
        sizes = QUICK if chosen.quick else FULL
        parts = []
        for part in chosen.only or PART_NAMES:
            try:
                parts.append(PARTS[part](sizes, folder, meter))
            except Exception as error:  # noqa: BLE001  an hour of other figures must not be lost with this one
                meter.say(traceback.format_exc())
                parts.append(failed(part, error))
    packages = [entrant.package for entrant in (HITHERTO, RAW, *PEERS)]
    versions = machine.versions([*packages, "claude-agent-sdk", "agentsview"])
    text = report.page(parts, facts, versions, trial=chosen.quick)
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    out = chosen.out or (None if chosen.quick or chosen.only else PAGE)
    if out is not None:
        report.write(out, text, (chart for part in parts for chart in part.charts))
        console.print(f"wrote {out}")
    return 0 if all(bar.met is not False for part in parts for bar in part.bars) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
