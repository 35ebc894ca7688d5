"""How far a policy is from optimal, and in which states it loses it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gainful.mdp.labels import label_column
from gainful.mdp.model import MDP
from gainful.planning.optimality_gaps import gaps_at, precise_plan

if TYPE_CHECKING:
    import pandas as pd

    from gainful.planning.evaluation import Evaluation
    from gainful.planning.plan import Plan

Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shortfall:
    r"""What a policy loses against the optimum per unit of time, state by state.

    With μ the policy's long-run fractions of time and gap(s,a) = g* + h*(s) - r(s,a) - p(·|s,a)·h* ≥ 0, ::

        g* - g = Σ_s μ(s) Σ_a π(a|s) gap(s,a)

    because μ (g* + h* - r - P h*) = g* - g for a stationary μ. So the losses of the states add up to the whole.

    Attributes
    ----------
    total : float
        How much less is earned (or more paid) per unit of time than by the optimal policy, from the start.
    optimal : Plan
        The optimal plan.
    per_visit : ndarray, shape (S,)
        Σ_a π(a|s) gap(s,a): what one visit of the state loses in the long run; 0 where the policy is optimal.
    by_state : ndarray, shape (S,)
        `per_visit` times the visits per unit of time; they add up to `total`.
    """

    total: float
    optimal: Plan
    per_visit: Values = field(repr=False)
    by_state: Values = field(repr=False)
    evaluation: Evaluation = field(repr=False)

    def to_frame(self) -> pd.DataFrame:
        """Tabulate the losses, the largest first.

        Returns
        -------
        pandas.DataFrame
            One row per state: what is played and what is best there, the fraction of time, and the losses.
        """
        import pandas as pd

        mdp = self.evaluation.mdp
        frame = pd.DataFrame(
            {
                "state": label_column(mdp.state_labels, mdp.n_states),
                "action": [played(mdp, self.evaluation.policy, s) for s in range(mdp.n_states)],
                "best": [self.optimal.action_named(s) for s in range(mdp.n_states)],
                "frequency": self.evaluation.stationary,
                "loss_per_visit": self.per_visit,
                "loss": self.by_state,
            }
        )
        return frame.iloc[np.argsort(-self.by_state, kind="stable")].reset_index(drop=True)


def shortfall_of(evaluation: Evaluation) -> Shortfall:
    """Compare an evaluated policy with the optimal plan; MultichainError if the optimal gain depends on the start."""
    mdp, policy = evaluation.mdp, evaluation.policy
    optimal, precision = precise_plan(mdp)
    gaps = np.nan_to_num(gaps_at(mdp, optimal, precision), nan=0.0)
    per_visit: Values = gaps[np.arange(mdp.n_states), policy] if policy.ndim == 1 else (policy * gaps).sum(axis=1)
    by_state = evaluation.stationary * per_visit / mdp.units.step_duration
    return Shortfall(
        total=max(0.0, mdp.units.sign * (optimal.gain - evaluation.gain_from_start)),
        optimal=optimal,
        per_visit=per_visit,
        by_state=by_state,
        evaluation=evaluation,
    )


def played(mdp: MDP, policy: NDArray[np.int64] | Values, s: int) -> str:
    """The action that a policy takes in state s, or its mixture."""
    if policy.ndim == 1:
        return mdp.action_name(int(policy[s]))
    chosen = np.flatnonzero(policy[s])
    if chosen.size == 1:
        return mdp.action_name(int(chosen[0]))
    return " | ".join(f"{mdp.action_name(int(a))} {policy[s, a]:.4g}" for a in chosen)
