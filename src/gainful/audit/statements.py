"""The audited statements: each in words, with its source, and whether it may fail in some runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Statement:
    """A claim that a theorem, or the definition of an algorithm, makes about every run.

    Attributes
    ----------
    name : str
        Its identifier.
    text : str
        The claim in words.
    source : str
        Where it comes from.
    likely : bool
        True if it holds with probability 1 − δ, so that it may fail in a fraction δ of all runs; False if it may never
        fail.
    events : int
        Where the proof adds up the probabilities of several events, a likely statement may fail in so many times δ.
    implied_by : tuple of str
        Statements from which it follows, whatever the agent does: if they hold it cannot fail.
    constants : bool
        Whether it is guaranteed for the theorem's constants only, that is for a bonus_scale or width_scale of 1.

    Examples
    --------
    >>> STATEMENTS["span"].text, STATEMENTS["span"].likely
    ('sp(v_k) ≤ c', False)
    """

    name: str
    text: str
    source: str
    likely: bool = False
    constants: bool = False
    events: int = 1
    implied_by: tuple[str, ...] = ()


_QIAN = "Qian, Fruit, Pirotta & Lazaric"

DEFINITION = "the definition of p̂"
"""What some statements follow from that hold for the estimated model whatever was counted."""
_PROOF = "the explicit bound"
_EACH = "the paper of each algorithm"
_KL = "docs/kl_scal_plus.md"
_SHARP = "docs/kl_scal_plus.md, lemmas 3, 4 and section 6"

_ALL = (
    Statement(
        "bonus-formula",
        "the bonus in use is that of the equation, and r̂ = r̄ + b_k",
        f"{_QIAN}, eqs. exploration.bonus, tigher.expl.bonus; docs/kl_scal_plus.md, section 6",
    ),
    Statement(
        "bias-formula",
        "bounds on differences of the bias, their closure and β are those of the equations, on the path walked again",
        "docs/pmevi.md",
    ),
    Statement(
        "bias-differences",
        "h*(s) − h*(s') ≤ d(s,s') for all states",
        "docs/pmevi.md, proposition 2",
        likely=True,
        constants=True,
        events=3,
    ),
    Statement(
        "mitigation",
        "p·h* ≤ p̄·h* + β at the optimal actions",
        "docs/pmevi.md",
        likely=True,
        constants=True,
        events=3,
    ),
    Statement(
        "bonus-rewards",
        "|r̄ − r| ≤ r_max·min{β_k, 1} for every pair; on cells, plus r_max·L·n^{−α}",
        f"{_QIAN}, proof of lemma explbonus.inequality",
        likely=True,
        constants=True,
    ),
    Statement(
        "bonus-transitions",
        "|(p̄ − p)·h*| ≤ c·min{β_k, 1} for every pair; on cells, plus c·L·n^{−α}",
        f"{_QIAN}, proof of lemma explbonus.inequality",
        likely=True,
        constants=True,
    ),
    Statement(
        "bonus-bias",
        "|r̄ − r + (p̂ − p)·h*| ≤ b_k for every pair",
        f"{_QIAN}, lemma bonus.inequality (a)",
        likely=True,
        constants=True,
        implied_by=("bonus-rewards", "bonus-transitions"),
    ),
    Statement(
        "bonus-values",
        "|r̄ − r + (p̂ − p)·v_k| ≤ d_k for every pair",
        f"{_QIAN}, lemma bonus.inequality (b)",
        likely=True,
        implied_by=("bonus-all-values", "span"),
    ),
    Statement(
        "bonus-all-values",
        "|r̄ − r| + (c/2)·‖p̂ − p‖₁ ≤ d_k for every pair: (b) for all v of span ≤ c at once",
        f"{_QIAN}, lemma bonus.inequality (b)",
        likely=True,
    ),
    Statement(
        "optimism",
        "the upper end of the planned gain, max (T_c v_k − v_k) computed again, is at least g*",
        f"{_QIAN}, lemma optimism",
        likely=True,
        constants=True,
    ),
    Statement("span", "sp(v_k) ≤ c", "ScOpt, Fruit et al. 2018"),
    Statement(
        "certificate",
        "T_c v_k − v_k, recomputed from the counts, lies in the planner's bracket",
        f"{_QIAN}, eqs. opT, hatp",
    ),
    Statement(
        "precision", "the planner's bracket is no wider than ε_k = r_max/√t_k", f"{_QIAN}, fig. ucrl.constrained"
    ),
    Statement(
        "bellman-error",
        "g_k − Σ π(s,a)(r̂ + p̂·v_k) ≤ −v_k(s) + ε_k, and two-sided on the augmented actions; MBIE-EB: |Tv_k − v_k| ≤ "
        "(1+γ)·ε_k/2 for its discounted operator",
        f"{_QIAN}, eqs. gerror.app, gerror.app2; Strehl & Littman 2008, section 5",
    ),
    Statement(
        "feasible",
        "where the span constraint is active, the action mixed in is worth no more than the cut",
        "ScOpt, Fruit et al. 2018",
        implied_by=("span",),
    ),
    Statement(
        "contraction",
        "the contraction coefficient is at most 1 − min (N(s,a,s̄)+1)/(N(s,a)+1)",
        f"{_QIAN}, sec. 3 (ergodic coefficient γ_k)",
        implied_by=(DEFINITION,),
    ),
    Statement(
        "unichain",
        "the policy reaches s̄ from every state of the estimated MDP",
        f"{_QIAN}, sec. 3",
        implied_by=(DEFINITION,),
    ),
    Statement(
        "episode-rule",
        "no pair is executed more than max{1, ⌊f_k·N_k⌋} times in an episode (f_k = 1: doubling), and one pair is "
        "executed that often; PSRL: or the episode is one step longer than the one before; UCBVI: blocks of H steps",
        f"{_QIAN}, fig. ucrl.constrained; Ouyang et al. 2017, algorithm 1",
    ),
    Statement(
        "episode-count",
        "at most S·A·log₂(8T/SA) episodes in T ≥ SA steps, or what another rule than doubling allows",
        f"Jaksch, Ortner & Auer 2010, app. C.2; {_KL}, section 5",
        implied_by=("episode-rule",),
    ),
    Statement("term-bonus", "Σ ν·b is at most its term of the bound", _PROOF, implied_by=("episode-rule",)),
    Statement("term-deviation", "Σ ν·d is at most its term of the bound", _PROOF, implied_by=("episode-rule",)),
    Statement("term-precision", "Σ ν·ε is at most its term of the bound", _PROOF, implied_by=("episode-rule",)),
    Statement("term-telescoping", "Σ v_k(s_end) − v_k(s_begin) is at most c per episode", _PROOF, implied_by=("span",)),
    Statement(
        "term-martingale",
        "luck, Σ (p·v − v(s′)) + (r − r_t), is at most its term of the bound",
        "Azuma's inequality",
        likely=True,
    ),
    Statement(
        "decomposition",
        "after every episode, regret ≤ Σ ν·(b + d + ε) + luck + telescoping",
        _PROOF,
        likely=True,
        constants=True,
    ),
    Statement(
        "regret-bound",
        "the regret is at most the explicit bound, at every checkpoint",
        f"{_QIAN}, theorems regret.bonusscal, regret.scalcont",
        likely=True,
        constants=True,
    ),
    Statement(
        "reward-domination",
        "r̃ ≥ r at (s, π*(s)) in every state; on cells, up to the Hölder term, at every point and action",
        _SHARP,
        likely=True,
        constants=True,
    ),
    Statement(
        "bias-domination",
        "b + p̂·h* ≥ p·h*, or klmax(p̄, h*, ρ) ≥ p·h*, at (s, π*(s)) in every state; on cells, up to the Hölder term, at "
        "every point and action",
        _SHARP,
        likely=True,
        constants=True,
    ),
    Statement(
        "mean-regret-bound",
        "Σ (g* − r(s_t, a_t)) is at most the explicit bound, at every checkpoint",
        "docs/kl_scal_plus.md",
        likely=True,
        constants=True,
        events=3,
    ),
    Statement(
        "projected-regret-bound",
        "Σ (g* − r(s_t, a_t)) is at most the explicit bound of KL-SCAL+ with the agent's c, at every checkpoint",
        "docs/pmevi.md",
        likely=True,
        constants=True,
        events=4,
    ),
    Statement("cells", "cells are closed on the right: I_1 = [0, 1/n], I_k = ((k−1)/n, k/n]", f"{_QIAN}, sec. 4"),
    Statement("set-formula", "the confidence set in use is that of the equation", _EACH),
    Statement("rewards-in-set", "every true mean reward lies in its interval", _EACH, likely=True, constants=True),
    Statement("rows-in-set", "every true transition row lies in its set", _EACH, likely=True, constants=True),
    Statement(
        "support",
        "UCRL3: a pair moves to what it has seen and to the best other states, as many as it takes for the rest to be "
        "worth less than κ and than these, and no more; after 100 sweeps of a plan their number does not fall",
        "Bourel, Maillard & Talebi 2020, algorithm 3; docs/ucrl3.md",
    ),
    Statement(
        "times-domination",
        "klmax(p̄, −τ_z, ρ) ≥ −p·τ_z at (s, π_z(s)) for all states s ≠ z",
        f"{_KL}, lemma 3",
        likely=True,
        constants=True,
    ),
    Statement(
        "span-diameter",
        "sp(v_k) ≤ (r_max + ε_k)·D + ε_k",
        f"{_KL}, proposition 6",
        likely=True,
        constants=True,
    ),
    Statement(
        "greedy",
        "the action played in s is worth r̃ + max p·v_k over its set ≥ v_k(s) + max(Tv_k − v_k) − ε_k",
        f"{_KL}, proposition 6; {_EACH}",
    ),
)

_IMED_RL = "Pesquerel & Maillard 2022 (IMED-RL)"
_DRAWN = "the laws of the posterior, by the inequalities of Dvoretzky, Kiefer & Wolfowitz and of Azuma"
_OWN_VALUES = (
    "Strehl & Littman 2008, lemma 7; Azar, Osband & Munos 2017, app. E (optimism of UCBVI-CH); Wei et al. 2020, app. B "
    "(Q̂ bounds Q* from above)"
)

_OF_OTHER_KINDS = (
    Statement(
        "sampled-model",
        "the model planned in is one: distributions over all states, and mean rewards within their range; Opt-PSRL: "
        "the rewards and the rows p⁻ + (1 − Σp⁻)·1_i of the equations",
        "Ouyang et al. 2017, algorithm 1; Agrawal & Jia 2017, section 3",
    ),
    Statement(
        "posterior-sample",
        "rows and mean rewards are draws of the posterior, counts plus prior: sqrt(n)·sup |F_n − F| of what should be "
        "uniform is no more than occurs in one of 10⁹ runs",
        _DRAWN,
    ),
    Statement(
        "fresh-sample",
        "the draws of consecutive plans are uncorrelated: |Σ (u − ½)(u′ − ½)|/sqrt(n) is no more than occurs in one of "
        "10⁹ runs",
        _DRAWN,
    ),
    Statement(
        "value-domination",
        "planned values are at least the true ones of the agent's own problem: V ≥ V* discounted (MBIE-EB), V_h ≥ V*_h "
        "of H steps (UCBVI), Q̂ ≥ Q* discounted (optimistic Q-learning)",
        _OWN_VALUES,
        likely=True,
        constants=True,
    ),
    Statement(
        "leaves",
        "the cells planned on are those that the rule splits, found again from the visits of the finest cells",
        "docs/adaptive_cells.md",
    ),
    Statement(
        "grids",
        "the grid planned on is the active one with the least claimed regret, found again from all episodes so far",
        "docs/adaptive_cells.md",
    ),
    Statement("given-policy", "the plan is the policy that the agent was given", "the definition of the agent"),
    Statement(
        "update-rule",
        "the tables are those of the equation, applied to the steps of the run from the first to the last",
        "Wei et al. 2020, algorithm 1; Wan, Naik & Sutton 2021, eqs. 5, 6",
    ),
    Statement(
        "skeleton-plan",
        "the bias solves the optimality equation of the estimated MDP restricted to its skeleton, computed again",
        f"{_IMED_RL}, algorithm 1",
    ),
    Statement("index-formula", "the indices are N·K + ln N, with K from its definition", f"{_IMED_RL}, proposition 2"),
    Statement(
        "least-index",
        "the action chosen has the least index, or is one that was never tried in its state",
        f"{_IMED_RL}, algorithm 1",
    ),
)

_BALANCED = (
    Statement(
        "base-choice",
        "the base with the least c_i·n_i that is not given up plays, no longer than until it has four times the least "
        "of the others; a base is given up if, and only if, it claims less than play proves",
        "docs/unknown_span.md",
    ),
    Statement(
        "base-kept",
        "no base with c_i ≥ sp(h*) is given up",
        "docs/unknown_span.md",
        likely=True,
        constants=True,
        events=2,
    ),
)

_TRACE = "the run repeated from the environment's draws"

_ALL_AND_TRACE = (
    *_ALL,
    *_OF_OTHER_KINDS,
    *_BALANCED,
    Statement("clock", "the agent plans at the step that the environment has reached", _TRACE),
    Statement("execution", "the action executed is the plan's, or was drawn from its mixture", _TRACE),
    Statement("data", "the transitions and rewards planned from are those of the run", _TRACE),
)

STATEMENTS: dict[str, Statement] = {statement.name: statement for statement in _ALL_AND_TRACE}
"""By name, in the order in which they are shown."""
