"""Small decision processes solved exactly, in fractions: every policy is tried.

The process meant by an MDP has its stored rows, divided by their exact sums, and its stored rewards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product

import gainful as gf

Row = dict[int, Fraction]
Values = list[Fraction]


def solve_exactly(matrix: list[Values], right: Values) -> Values:
    """The x with matrix·x = right, by Gaussian elimination."""
    n = len(right)
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for i in range(n):
        pivot = next(j for j in range(i, n) if rows[j][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(n):
            if j != i and rows[j][i] != 0:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i], strict=True)]
    return [rows[i][n] / rows[i][i] for i in range(n)]


def reached_from(chain: Sequence[Row], state: int) -> set[int]:
    """The states that a chain may visit from `state`, itself included."""
    found, todo = {state}, [state]
    while todo:
        for x in chain[todo.pop()]:
            if x not in found:
                found.add(x)
                todo.append(x)
    return found


def chain_gains(chain: Sequence[Row], rewards: Values) -> Values:
    """The average reward from every state of a Markov chain, however many classes it has."""
    n = len(chain)
    reach = [reached_from(chain, s) for s in range(n)]
    recurrent = [all(s in reach[x] for x in reach[s]) for s in range(n)]
    gains: list[Fraction | None] = [None] * n
    for s in range(n):
        if recurrent[s] and gains[s] is None:
            states = sorted(reach[s])
            for x in states:
                gains[x] = _class_gain(chain, rewards, states)
    transient = [s for s in range(n) if not recurrent[s]]
    if transient:
        matrix = [[Fraction(int(s == x)) - chain[s].get(x, Fraction(0)) for x in transient] for s in transient]
        right = [sum((p * (gains[x] or 0) for x, p in chain[s].items()), Fraction(0)) for s in transient]
        for s, gain in zip(transient, solve_exactly(matrix, right), strict=True):
            gains[s] = gain
    return [g if g is not None else Fraction(0) for g in gains]


def _class_gain(chain: Sequence[Row], rewards: Values, states: list[int]) -> Fraction:
    """g of g + h = r + Ph with h = 0 at the first state: its column holds g."""
    matrix = []
    for s in states:
        row = [Fraction(int(s == x)) - chain[s].get(x, Fraction(0)) for x in states]
        row[0] = Fraction(1)
        matrix.append(row)
    return solve_exactly(matrix, [rewards[s] for s in states])[0]


class ExactMDP:
    """Rows, rewards and units of an MDP as fractions."""

    def __init__(self, mdp: gf.MDP) -> None:
        self.mdp = mdp
        self.offset, self.duration = Fraction(mdp.units.offset), Fraction(mdp.units.step_duration)
        self.sign = int(mdp.units.sign)
        self.rows: list[Row] = []
        self.rewards: Values = []
        """Internal: to be maximised, per step."""
        for k in range(mdp.n_states * mdp.n_actions):
            row, reward = self._pair(k)
            self.rows.append(row)
            self.rewards.append(reward)

    def _pair(self, k: int) -> tuple[Row, Fraction]:
        mdp = self.mdp
        row: Row = {}
        entries = range(int(mdp.indptr[k]), int(mdp.indptr[k + 1]))
        total = sum((Fraction(float(mdp.probabilities[j])) for j in entries), Fraction(0))
        reward = Fraction(float(mdp.pair_rewards[k]))
        if mdp.entry_rewards is not None:
            reward = Fraction(0)
        for j in entries:
            p, x = Fraction(float(mdp.probabilities[j])) / total, int(mdp.indices[j])
            row[x] = row.get(x, Fraction(0)) + p
            if mdp.entry_rewards is not None:
                reward += p * Fraction(float(mdp.entry_rewards[j]))
        return row, reward

    def gain_in_units(self, internal: Fraction) -> Fraction:
        """The user's gain."""
        return self.sign * (internal + self.offset) / self.duration

    @property
    def states(self) -> range:
        return range(self.mdp.n_states)

    def actions(self, s: int) -> list[int]:
        """The actions that a state has."""
        return [a for a in range(self.mdp.n_actions) if self.mdp.allowed[s, a]]

    def policies(self) -> Iterator[tuple[int, ...]]:
        """Every deterministic policy."""
        return product(*(self.actions(s) for s in self.states))

    def chain(self, policy: Sequence[int]) -> tuple[list[Row], Values]:
        """The Markov chain of a policy, and its rewards."""
        pairs = [s * self.mdp.n_actions + int(a) for s, a in enumerate(policy)]
        return [self.rows[k] for k in pairs], [self.rewards[k] for k in pairs]

    def gains(self, policy: Sequence[int]) -> Values:
        """Internal gains of a policy."""
        return chain_gains(*self.chain(policy))

    @cached_property
    def optimal_gains(self) -> Values:
        """The best internal gain from every state."""
        return _best(max, (self.gains(policy) for policy in self.policies()))

    def truncated_gains(self, span: Fraction) -> Values:
        """The growth rate of T_c from every state.

        T_c v(s) is the smallest over x of max_a q(x,a) + c·1(x ≠ s): a game in which one player first moves s to x.
        """
        moves = list(product(self.states, repeat=self.mdp.n_states))
        return _best(max, (_best(min, self._after_moves(policy, moves, span)) for policy in self.policies()))

    def _after_moves(self, policy: Sequence[int], moves: list[tuple[int, ...]], span: Fraction) -> Iterator[Values]:
        rows, rewards = self.chain(policy)
        for move in moves:
            paid = [rewards[x] + (span if x != s else 0) for s, x in enumerate(move)]
            yield chain_gains([rows[x] for x in move], paid)

    def discounted_values(self, discount: Fraction) -> Values:
        """The best internal discounted value of every state."""
        return _best(max, (self._discounted(*self.chain(policy), discount) for policy in self.policies()))

    def _discounted(self, rows: list[Row], rewards: Values, discount: Fraction) -> Values:
        matrix = [
            [Fraction(int(s == x)) - discount * rows[s].get(x, Fraction(0)) for x in self.states] for s in self.states
        ]
        return solve_exactly(matrix, rewards)

    def values_to_go(self, horizon: int) -> list[Values]:
        """The best internal totals of the next 0, 1, … `horizon` steps."""
        values = [[Fraction(0)] * self.mdp.n_states]
        for _ in range(horizon):
            last = values[-1]
            values.append([max(self._one_step(s, a, last) for a in self.actions(s)) for s in self.states])
        return values

    def _one_step(self, s: int, a: int, after: Values) -> Fraction:
        k = s * self.mdp.n_actions + a
        return self.rewards[k] + sum((p * after[x] for x, p in self.rows[k].items()), Fraction(0))

    def hitting_times(self, target: int) -> list[Fraction | None]:
        """The least expected steps to `target`; None where no policy reaches it with probability 1."""
        best: list[Fraction | None] = [None] * self.mdp.n_states
        for policy in self.policies():
            for s, time in enumerate(_times_of(self.chain(policy)[0], target)):
                if time is not None and (best[s] is None or time < best[s]):  # type: ignore[operator]
                    best[s] = time
        return best


def _times_of(chain: list[Row], target: int) -> list[Fraction | None]:
    reach = [reached_from([{target: Fraction(1)} if s == target else row for s, row in enumerate(chain)], s)
             for s in range(len(chain))]  # fmt: skip
    sure = [s for s in range(len(chain)) if s != target and all(target in reach[x] for x in reach[s])]
    matrix = [[Fraction(int(s == x)) - chain[s].get(x, Fraction(0)) for x in sure] for s in sure]
    times: list[Fraction | None] = [None] * len(chain)
    times[target] = Fraction(0)
    if sure:
        for s, time in zip(sure, solve_exactly(matrix, [Fraction(1)] * len(sure)), strict=True):
            times[s] = time
    return times


def _best(choose: Callable[[Values], Fraction], tables: Iterator[Values]) -> Values:
    """The best of each entry."""
    best: Values | None = None
    for values in tables:
        best = values if best is None else [choose([x, y]) for x, y in zip(best, values, strict=True)]
    assert best is not None
    return best
