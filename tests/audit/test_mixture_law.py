"""C-SCAL+ and C-KL-SCAL+ audited with d = 2 and α = ½: against plain sums, and where a constant is wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import gainful as gf
from gainful.agents.refinement import TransitionLog
from gainful.audit import audit, audit_run
from gainful.audit.cells import CellsTruth, grid_of
from gainful.audit.mixture_law import MixtureTables
from gainful.audit.points import POINTS, TRUE_VALUES, CellSums, LoggedTransitions
from gainful.audit.rows import CountedRows
from tests.audit.test_cells import audited_while_refined

NAMES = ("rough-mixture", "planar-mixture")
SPAN = 0.6


@cache
def truth_for(name: str) -> CellsTruth:
    return CellsTruth.of(gf.environments.make_continuous(name))


def learner(env: Any, bins: int | None, kind: Any = gf.CSCALPlus, **options: Any) -> Any:
    cells = {"dim": env.dim} if bins is None else {"partition": gf.Partition.uniform(bins=bins, dim=env.dim)}
    given = {"n_actions": 2, "span": SPAN, "lipschitz": env.lipschitz, "holder": env.holder, **cells}
    return kind(**{**given, **options})


@pytest.mark.parametrize("name", NAMES)
def test_tables_are_plain_sums_over_small_cells(name: str) -> None:
    truth = truth_for(name)
    env, n = truth.environment, 5
    part = gf.Partition.uniform(bins=n, dim=env.dim)
    tables = truth.on(part)
    assert isinstance(tables, MixtureTables)
    assert tables.inside.all()
    assert np.array_equal(part.index_many(tables.places), np.repeat(np.arange(part.n_cells), POINTS))
    assert truth.solution is not None
    fine = 40_000 if env.dim == 1 else 300
    axis = (np.arange(fine) + 0.5) / fine
    grid = np.stack([g.reshape(-1) for g in np.meshgrid(*[axis] * env.dim, indexing="ij")], axis=1)
    assert env.mixture is not None
    good, h = env.mixture.level(grid) > 0.5, env.mixture.solution.bias(grid)
    cells = part.index_many(grid)
    assert tables.anchor == pytest.approx(float(h[cells == 0].mean()), rel=0, abs=1e-3)
    v = np.random.default_rng(0).random(part.n_cells)
    for i in range(0, len(tables.places), 7):
        for a in (0, 1):
            w = float(env.mixture.weight(tables.places[i : i + 1], a)[0])
            expected = (1 - w) * h[~good].mean() + w * h[good].mean()
            assert tables.expected[i, a] == pytest.approx(float(expected), rel=0, abs=1e-3)
            value = (1 - w) * v[cells[~good]].mean() + w * v[cells[good]].mean()
            mixed = tables.parts[0] + tables.weights[i, a] * (tables.parts[1] - tables.parts[0])
            assert float(mixed @ v) == pytest.approx(float(value), rel=0, abs=5e-3)


@pytest.mark.parametrize("name", NAMES)
def test_transitions_are_counted_with_the_true_model_at_their_points(name: str) -> None:
    truth = truth_for(name)
    env, n = truth.environment, 4
    part, random = gf.Partition.uniform(bins=n, dim=env.dim), np.random.default_rng(2)
    S, grid, tables = part.n_cells, grid_of(part, 2), truth.on(part)
    assert isinstance(tables, MixtureTables)
    counter, v = tables.counter(), random.random(S)
    log, rounds = TransitionLog(env.dim), 60
    x, to, actions = random.random((rounds, env.dim)), random.random((rounds, env.dim)), random.integers(0, 2, rounds)
    for i in range(rounds):
        log.append(x[i], int(actions[i]), 0.0, to[i])
    sums = CellSums(np.zeros(2 * S, dtype=np.int64), np.zeros(2 * S))
    moves = LoggedTransitions(log.origin, log.target, log.action)
    drift = counter.take(moves, (0, rounds), grid, TRUE_VALUES, (1, v), sums)
    cells = part.index_many(x)
    pairs = cells * 2 + actions
    assert np.array_equal(sums.counts, np.bincount(pairs, minlength=2 * S))
    assert env.mixture is not None
    h = np.bincount(pairs, weights=env.mixture.solution.bias(to), minlength=2 * S)
    assert sums.bias == pytest.approx(h, rel=0, abs=1e-12)
    w = np.array([env.mixture.weight(x[i : i + 1], int(actions[i]))[0] for i in range(rounds)])
    at_0, at_1 = tables.parts @ v
    assert drift == pytest.approx(float(np.sum(at_0 + w * (at_1 - at_0) - v[cells])), rel=0, abs=1e-10)
    # p̂ of two pairs, one of them never visited, against dense rows
    rows = CountedRows(
        np.array([0, 2, *[2] * (2 * S - 2)]),
        np.array([2, *[0] * (2 * S - 1)]),
        np.array([1, S - 1], dtype=np.uint32),
        np.array([3, 4]),
        np.array([7, *[0] * (2 * S - 1)]),
    )
    found, apart = np.full((2 * S, POINTS), np.nan), np.full((2 * S, POINTS), np.nan)
    counter.compare(rows, np.arange(2 * S) != 1, v, found, apart)
    q = np.zeros(S)
    q[[0, 1, S - 1]] = 1 / 8, 3 / 8, 4 / 8
    for j in range(POINTS):
        p = tables.parts[0] + tables.weights[j, 0] * (tables.parts[1] - tables.parts[0])
        assert found[0, j] == pytest.approx(float(p @ v), rel=0, abs=1e-12)
        assert apart[0, j] == pytest.approx(float(np.abs(p - q).sum()), rel=0, abs=1e-12)
    assert np.all(found[1] == 0.0)
    assert np.all(np.isfinite(apart))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bonus", ["appendix", "sharp"])
def test_every_statement_applies_and_holds(name: str, bonus: str) -> None:
    truth = truth_for(name)
    found = audit_run(learner(truth.environment, 6, bonus=bonus), truth.environment, 20_000, 1, truth=truth)
    assert found.failed == []
    assert all(finding.applicable for finding in found.findings.values())
    assert np.shape(found.shown["points"][list(found.findings)[1]]) == (() if truth.environment.dim == 1 else (2,))


@pytest.mark.parametrize("name", NAMES)
def test_cells_that_are_refined(name: str) -> None:
    truth = truth_for(name)
    audited_while_refined(learner(truth.environment, None), truth)


@pytest.mark.parametrize("name", NAMES)
def test_c_kl_scal_plus_holds(name: str) -> None:
    truth = truth_for(name)
    found = audit_run(learner(truth.environment, 4, gf.CKLSCALPlus), truth.environment, 5_000, 1, truth=truth)
    assert found.failed == []
    assert all(finding.applicable for finding in found.findings.values())


@pytest.mark.parametrize(
    ("name", "bins", "told"),
    [
        ("rough-mixture", 4, {"reward_lipschitz": 0.8, "transition_lipschitz": 0.8}),
        ("rough-mixture", 8, {"holder": 1.0}),  # as if it were smooth
        ("planar-mixture", 2, {"reward_lipschitz": 0.6, "transition_lipschitz": 0.6}),
    ],
)
def test_an_environment_that_states_constants_too_small_is_caught(name: str, bins: int, told: dict[str, float]) -> None:
    env = replace(truth_for(name).environment, **told)  # type: ignore[arg-type]
    found = audit_run(learner(env, bins), env, 10**5, 1, truth=replace(truth_for(name), environment=env))
    assert "bonus-rewards" in found.failed
    assert set(found.failed) <= {"bonus-rewards", "bonus-transitions", "bonus-bias", "bonus-values", "bonus-all-values"}


@pytest.mark.parametrize(("name", "factor"), [("rough-mixture", 0.5), ("planar-mixture", 1 / 3)])
def test_an_agent_with_the_wrong_term_for_cells_is_caught(name: str, factor: float) -> None:
    """n the number of cells rather than of intervals per axis, in d = 2; α = 1 in place of ½."""
    truth = truth_for(name)
    agent = learner(truth.environment, 4 if truth.environment.dim == 1 else 3)
    agent.core.model_error *= factor
    found = audit_run(agent, truth.environment, 300, 0, truth=truth)
    assert found.failed[0] == "bonus-formula"
    assert found.findings["bonus-formula"].failures == found.episodes


def test_an_agent_told_a_smaller_constant_is_promised_nothing() -> None:
    truth = truth_for("planar-mixture")
    found = audit_run(learner(truth.environment, 3, lipschitz=1.9), truth.environment, 300, 0, truth=truth)
    assert "given L = 1.9, α = 1, the environment has 2 and 1" in found.findings["optimism"].reason
    assert found.failed == []


@pytest.mark.parametrize("name", NAMES)
def test_a_box_wider_than_the_environment(name: str) -> None:
    truth = truth_for(name)
    env = truth.environment
    part = gf.Partition.uniform(bins=6, dim=env.dim, low=-1.0, high=2.0)  # cells without points of the environment
    wide = learner(env, 6, partition=part, lipschitz=3.0 * (env.lipschitz or 0.0))
    found = audit_run(wide, env, 3_000, 0, truth=truth)
    assert found.failed == []
    assert all(finding.applicable for finding in found.findings.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_statement_is_certified_with_the_theorems_constants(name: str) -> None:
    env = truth_for(name).environment
    found = audit(lambda seed: learner(env, 5, seed=seed), env, 5_000, runs=60)
    assert found.ok
    assert {verdict.verdict for verdict in found.verdicts.values()} <= {"certified", "implied", "cannot fail here"}
