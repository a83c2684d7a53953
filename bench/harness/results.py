"""What a part of the benchmark hands to the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Bar:
    """One promise, the figure that was measured for it, and whether it was kept (None: only to be shown)."""

    promise: str
    figure: str
    met: bool | None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a line that says what they are."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A plot: lines over sizes (`lines`), or one point per name (`points`); both on a logarithmic scale of values."""

    name: str
    title: str
    values: str
    points: dict[str, float] = field(default_factory=dict)
    sizes: str = ""
    lines: dict[str, dict[int, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the benchmark as it is reported."""

    title: str
    method: str
    bars: Sequence[Bar] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()


def at_least(promise: str, value: float, limit: float, figure: str) -> Bar:
    """A bar that is met from `limit` upwards."""
    return Bar(promise, figure, value >= limit)


def at_most(promise: str, value: float, limit: float, figure: str) -> Bar:
    """A bar that is met from `limit` downwards."""
    return Bar(promise, figure, value <= limit)


def not_measured(promise: str, reason: str) -> Bar:
    """A bar without a figure: that is a miss, never a pass."""
    return Bar(promise, f"not measured: {reason}", met=False)


def failed(name: str, error: Exception) -> Part:
    """A part that could not be measured at all."""
    reason = f"{type(error).__name__}: {error}"
    return Part(title=name.capitalize(), method="Failed.", bars=[not_measured(f"the part `{name}`", reason)])


def duration(seconds: float) -> str:
    """Seconds as people say them: µs, ms or s with three digits."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return (
                f"{seconds * factor:.3g} {unit}"
                if seconds * factor < 1000
                else f"{seconds * factor:.0f} {unit}"
            )
    return f"{seconds * 1e6:.2f} µs"


def times(ratio: float) -> str:
    """A ratio with as many digits as it deserves."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}"
