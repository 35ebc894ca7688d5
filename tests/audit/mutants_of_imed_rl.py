"""Deliberate mistakes in IMED-RL; see `mutants`."""

from __future__ import annotations

from tests.audit.mutants import RIVER, Mutant

_INDEX, _PLAN, _AGENT, _LOOP = (
    "optimism/imed_rl.py",
    "planning/skeleton.py",
    "agents/imed_rl.py",
    "simulation/indexed.py",
)
IMED_RL = (*RIVER, "--agent", "imed-rl")
_STEPPED = "tests/agents/test_imed_rl.py::test_stepped_compiled_and_resumed_runs_are_equal_to_the_bit"
_EQUATIONS = "tests/agents/test_imed_rl.py::test_every_decision_has_the_least_index_of_the_equations"


def mistake(name: str, file: str, old: str, new: str, noticed: str, test: str = _EQUATIONS) -> Mutant:
    """One text for another in one file."""
    return Mutant(f"IMED-RL: {name}", file, ((old, new),), (noticed,), test, IMED_RL)


MUTANTS_OF_IMED_RL = (
    mistake(
        "ln B is left out of K, as in public implementations",
        _INDEX,
        "against = total * (n / (n + 1.0))",
        "against = total * (n / (n + 1.0)) + n * math.log(top + model.reward_range - bias.min())",
        "index-formula",
    ),
    mistake(
        "an action is kept although another is better",
        _PLAN,
        "MOST_ROUNDS = 100",
        "MOST_ROUNDS = 1",
        "skeleton-plan",
    ),
    mistake("the largest index of two", _INDEX, "chosen = a", "chosen = index.size - 1 - a", "least-index"),
    mistake("no ln N", _INDEX, "against + math.log(n)", "against", "index-formula"),
    mistake("λ after one step", _INDEX, "MOST_DUAL_STEPS = 100", "MOST_DUAL_STEPS = 1", "index-formula"),
    mistake("M without r_max", _INDEX, "top + model.reward_range)", "top + 0.5 * model.reward_range)", "index-formula"),
    mistake(
        "a reward seen before counts half",
        _INDEX,
        "atoms.weight[pair, at] += 1.0",
        "atoms.weight[pair, at] += 0.5",
        "index-formula",
    ),
    mistake("a skeleton of ln³", _PLAN, "math.log(most) ** 2", "math.log(most) ** 3", "skeleton-plan"),
    mistake(
        "the sample that was never seen earns nothing",
        _PLAN,
        "model.reward_sum[pair] + 0.5 * model.reward_range + average",
        "model.reward_sum[pair] + average",
        "skeleton-plan",
    ),
    mistake(
        "actions that were never tried wait",
        _INDEX,
        "index[a] = 0.0 if untried else math.inf",
        "index[a] = math.inf if untried or not model.allowed[s, a] else 0.0",
        "least-index",
    ),
    mistake(
        "a plan before every third decision",
        _AGENT,
        "t > before + by.lazy * before",
        "t > before + 2",
        "clock",
    ),
    mistake(
        "another action in a tenth of the steps",
        _LOOP,
        "choose_by_index(model, tables, state, steps_before + t)",
        "(0 if choose_by_index(model, tables, state, steps_before + t) < 0 or t % 10 == 0 else 1)",
        "execution",
        _STEPPED,
    ),
    mistake(
        "half of every reward is lost",
        _LOOP,
        "count_visit(counted, pair, inner)",
        "count_visit(counted, pair, 0.5 * inner)",
        "data",
        _STEPPED,
    ),
)
