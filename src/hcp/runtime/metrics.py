"""Counters, gauges and histograms in the Prometheus text format: the small part of it that an operator needs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Registry:
    """All metrics of a process, written out in one text."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def add(self, metric: Metric) -> None:
        if metric.name in self._metrics:
            raise ValueError(f"the metric {metric.name} exists already")
        self._metrics[metric.name] = metric

    def render(self) -> str:
        lines: list[str] = []
        for name in sorted(self._metrics):
            metric = self._metrics[name]
            lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
            lines += metric.samples()
        return "\n".join(lines) + "\n"


REGISTRY = Registry()


def render(registry: Registry | None = None) -> str:
    """Everything, as Prometheus scrapes it."""
    return (registry or REGISTRY).render()


class Metric:
    """The labels that all kinds of metrics share."""

    kind = "untyped"

    def __init__(self, name: str, help: str, labels: Sequence[str] = (), registry: Registry | None = None) -> None:
        self.name = name
        self.help = help.replace("\\", "\\\\").replace("\n", "\\n")
        self.labels = tuple(labels)
        (registry or REGISTRY).add(self)

    def _key(self, labels: dict[str, str]) -> tuple[str, ...]:
        if len(labels) != len(self.labels):
            raise ValueError(f"{self.name} needs exactly the labels {', '.join(self.labels) or 'none'}")
        return tuple(str(labels[name]) for name in self.labels)

    def _text(self, key: Iterable[str], extra: str = "") -> str:
        pairs = [f'{n}="{_escape(v)}"' for n, v in zip(self.labels, key, strict=True)]
        if extra:
            pairs.append(extra)
        return "{" + ",".join(pairs) + "}" if pairs else ""

    def samples(self) -> list[str]:
        return []


class Counter(Metric):
    """Only goes up."""

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str] = (), registry: Registry | None = None) -> None:
        super().__init__(name, help, labels, registry)
        self._values: dict[tuple[str, ...], float] = {}

    def inc(self, amount: float = 1, **labels: str) -> None:
        key = self._key(labels)
        self._values[key] = self._values.get(key, 0) + amount

    def value(self, **labels: str) -> float:
        return self._values.get(self._key(labels), 0)

    def total(self) -> float:
        return sum(self._values.values())

    def items(self) -> list[tuple[tuple[str, ...], float]]:
        """Every series: the values of its labels, in their order, and its value."""
        return list(self._values.items())

    def remove(self, **labels: str) -> None:
        """Forget one series, for example of a cluster that is gone."""
        self._values.pop(self._key(labels), None)

    def samples(self) -> list[str]:
        return [f"{self.name}{self._text(key)} {_number(value)}" for key, value in self._values.items()]


class Gauge(Counter):
    """Goes up and down."""

    kind = "gauge"

    def set(self, value: float, **labels: str) -> None:
        self._values[self._key(labels)] = value

    def dec(self, amount: float = 1, **labels: str) -> None:
        self.inc(-amount, **labels)


class Histogram(Metric):
    """Counts observations by size."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        help: str,
        labels: Sequence[str] = (),
        registry: Registry | None = None,
        buckets: Sequence[float] = SECONDS,
    ) -> None:
        super().__init__(name, help, labels, registry)
        self.buckets = tuple(sorted(buckets))
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, value: float, **labels: str) -> None:
        key = self._key(labels)
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = [0] * (len(self.buckets) + 1)
        counts[bisect_left(self.buckets, value)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + value

    def count(self, **labels: str) -> int:
        return sum(self._counts.get(self._key(labels), ()))

    def remove(self, **labels: str) -> None:
        key = self._key(labels)
        self._counts.pop(key, None)
        self._sums.pop(key, None)

    def samples(self) -> list[str]:
        lines = []
        bounds = [_number(b) for b in self.buckets] + ["+Inf"]
        for key, counts in self._counts.items():
            for bound, total in zip(bounds, accumulate(counts), strict=True):
                le = f'le="{bound}"'
                lines.append(f"{self.name}_bucket{self._text(key, le)} {total}")
            lines.append(f"{self.name}_sum{self._text(key)} {_number(self._sums[key])}")
            lines.append(f"{self.name}_count{self._text(key)} {sum(counts)}")
        return lines


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
