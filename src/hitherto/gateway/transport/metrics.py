"""The metrics of the server in the text format of Prometheus. No label holds text of users."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator

from hitherto import __version__

KIND = b"text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
OTHER = "other"

Labels = tuple[tuple[str, str], ...]


class Counted:
    """A number that rises, for each set of labels."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self._values: Counter[Labels] = Counter()

    def add(self, **labels: str) -> None:
        """One more."""
        self._values[tuple(labels.items())] += 1

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.text, "counter")
        for labels, value in sorted(self._values.items()):
            yield f"{self.name}{_shown(labels)} {value}"


class Gauge:
    """A number that is read when metrics are requested."""

    def __init__(self, name: str, text: str, read: Callable[[], float]) -> None:
        self.name, self.text, self._read = name, text, read

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.text, "gauge")
        yield f"{self.name} {self._read():g}"


class Timed:
    """How long something took, for each set of labels."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        self._counts: dict[Labels, list[int]] = {}
        self._sums: Counter[Labels] = Counter()

    def add(self, seconds: float, **labels: str) -> None:
        """One more, which took so long."""
        known = tuple(labels.items())
        counts = self._counts.setdefault(known, [0] * (len(SECONDS) + 1))
        counts[bisect_left(SECONDS, seconds)] += 1
        self._sums[known] += seconds  # type: ignore[assignment]  # a Counter adds floats as well

    def lines(self) -> Iterator[str]:
        yield from _head(self.name, self.text, "histogram")
        for labels, counts in sorted(self._counts.items()):
            total = 0
            for bound, count in zip((*map(str, SECONDS), "+Inf"), counts, strict=True):
                total += count
                yield f"{self.name}_bucket{_shown((*labels, ('le', bound)))} {total}"
            yield f"{self.name}_sum{_shown(labels)} {self._sums[labels]:.6f}"
            yield f"{self.name}_count{_shown(labels)} {total}"


class Metrics:
    """All that is counted."""

    def __init__(self) -> None:
        self.requests = Counted("hitherto_requests_total", "Requests answered, by method and outcome.")
        self.seconds = Timed("hitherto_request_seconds", "Duration of requests, by transport.")
        self.refused = Counted("hitherto_refused_total", "Requests refused before they reached a method.")
        self.events = Counted("hitherto_events_total", "Events sent to subscribers.")
        self._gauges: list[Gauge] = []

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Show one more number."""
        self._gauges.append(Gauge(name, text, read))

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        lines = [*_head("hitherto_info", "The running version.", "gauge")]
        lines.append(f'hitherto_info{{version="{__version__}"}} 1')
        shown: list[Counted | Timed | Gauge] = [self.requests, self.seconds, self.refused, self.events]
        for each in (*shown, *self._gauges):
            lines.extend(each.lines())
        return ("\n".join(lines) + "\n").encode()


def _head(name: str, text: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {text}", f"# TYPE {name} {kind}"


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}"
