"""Draws the charts as SVG files that are the same, byte for byte, for the same figures."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from bench.harness.results import Chart

OURS = "#0b6e4f"
RAW = "#8a8a8a"
OTHERS = "#4f81a8"
STYLE = {
    # Without a salt the ids in the file are new in every run.
    "svg.hashsalt": "bench",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


def draw(chart: Chart, file: Path) -> None:
    """Write `chart` to `file`."""
    matplotlib = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot = import_module("matplotlib.pyplot")
    with matplotlib.rc_context(STYLE):
        height = 1.2 + 0.28 * len(chart.points) if chart.points else 4.2
        figure, axes = pyplot.subplots(figsize=(7.2, height), layout="constrained")
        (_points if chart.points else _lines)(chart, axes)
        axes.set_title(chart.title, loc="left")
        figure.savefig(file, format="svg", metadata=NO_METADATA)
        pyplot.close(figure)


def _colour(name: str) -> str:
    return OURS if name.startswith("Hitherto") else RAW if name.startswith(("raw", "Python")) else OTHERS


def _points(chart: Chart, axes: Any) -> None:
    """One point per name: on a logarithmic scale the length of a bar would mean nothing."""
    items = sorted(chart.points.items(), key=lambda item: item[1])
    names, values = [name for name, _ in items], [value for _, value in items]
    axes.scatter(values, names, c=[_colour(name) for name in names], s=36, zorder=2)
    for name, value in items:
        label = f"{value:,.3g}" if value < 100 else f"{value:,.0f}"
        axes.annotate(label, (value, name), xytext=(7, -3), textcoords="offset points")
    axes.set_xscale("log")
    axes.set_xlabel(f"{chart.values} (logarithmic)")
    axes.grid(axis="y", linewidth=0.3)
    axes.margins(x=0.12)


def _lines(chart: Chart, axes: Any) -> None:
    for name, points in chart.lines.items():
        style = "-" if name.startswith("Hitherto") else "--"
        axes.plot(
            list(points), list(points.values()), style, marker="o", markersize=3, linewidth=1.2, label=name
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(chart.sizes)
    axes.set_ylabel(chart.values)
    axes.grid(which="major", linewidth=0.3)
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
