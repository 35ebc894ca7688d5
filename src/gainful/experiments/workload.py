"""How much work is left of a sweep: estimates at first, then what runs of the same kind have taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class Workload:
    """Runs to come, by their kind (a configuration without its seed), and how far those under way are."""

    def __init__(self, runs: Iterable[tuple[str, str, int]], seconds: dict[str, float]) -> None:
        """`runs` are (run id, kind, horizon), `seconds` an estimate for one run of each kind."""
        self._run = {i: (kind, horizon) for i, kind, horizon in runs}
        self._left = Counter(kind for kind, _ in self._run.values())
        self._estimate = dict(seconds)
        self._measured: dict[str, tuple[int, float]] = {}
        self._started: dict[str, int] = {}
        self._step: dict[str, int] = {}
        self.steps = 0
        """Steps made since the sweep began, not those of an earlier call that a checkpoint brought."""

    def stepped(self, run_id: str, step: int) -> None:
        """A run is at `step`; the first that is heard of it is where it begins, or goes on."""
        if run_id not in self._step:
            self._started[run_id] = self._step[run_id] = step
        self.steps += step - self._step[run_id]
        self._step[run_id] = step

    def finished(self, run_id: str, seconds: float) -> None:
        """A run has come to its end, `seconds` after it began or went on."""
        kind, horizon = self._run[run_id]
        if run_id not in self._step:
            self._started[run_id] = self._step[run_id] = 0
        self.steps += horizon - self._step[run_id]
        made = horizon - self._started[run_id]
        if made > 0:
            n, mean = self._measured.get(kind, (0, 0.0))
            self._measured[kind] = n + 1, mean + (seconds * horizon / made - mean) / (n + 1)
        self.dropped(run_id)

    def lost(self, run_id: str) -> None:
        """A run is to be tried again."""
        self._step.pop(run_id, None)
        self._started.pop(run_id, None)

    def dropped(self, run_id: str) -> None:
        """A run is not coming any more."""
        self.lost(run_id)
        self._left[self._run[run_id][0]] -= 1

    def seconds_of(self, kind: str) -> float:
        """What one run of a kind takes."""
        return self._measured[kind][1] if kind in self._measured else self._estimate[kind]

    @property
    def under_way(self) -> float:
        """The shares made of the runs that have begun, summed."""
        return sum(step / self._run[run_id][1] for run_id, step in self._step.items())

    @property
    def seconds(self) -> float:
        """What is left, run one after the other."""
        whole = sum(n * self.seconds_of(kind) for kind, n in self._left.items())
        made = 0.0
        for run_id, step in self._step.items():
            kind, horizon = self._run[run_id]
            made += self.seconds_of(kind) * step / horizon
        return max(0.0, whole - made)
