"""gainful: learning to act for the long run, in average-reward Markov decision processes."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if os.name != "posix":  # pragma: no cover
    raise ImportError("gainful needs a POSIX system such as Linux or macOS; on Windows, use the Subsystem for Linux")

from gainful.gymnasium_ids import register_with_gymnasium

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from gainful import audit, environments, errors, live, planning, plot, problems, theory
    from gainful.agents.adaptive_kl_scal_plus import AdaptiveKLSCALPlus
    from gainful.agents.balanced_grids import BalancedGrids
    from gainful.agents.balanced_kl_scal_plus import BalancedKLSCALPlus
    from gainful.agents.c_kl_scal_plus import CKLSCALPlus
    from gainful.agents.c_scal_plus import CSCALPlus
    from gainful.agents.count_bonus import CountBonus
    from gainful.agents.discretized import Discretized
    from gainful.agents.epsilon_greedy_q import EpsilonGreedyQ
    from gainful.agents.files import load_agent
    from gainful.agents.fixed import Fixed
    from gainful.agents.imed_rl import IMEDRL
    from gainful.agents.kl_scal_plus import KLSCALPlus
    from gainful.agents.kl_ucrl import KLUCRL
    from gainful.agents.learned_policy import LearnedPolicy, learned_policy
    from gainful.agents.lipschitz_bound import LipschitzBound, lipschitz_lower_bound
    from gainful.agents.mbie_eb import MBIEEB
    from gainful.agents.opt_psrl import OptPSRL
    from gainful.agents.optimistic_q import OptimisticQ
    from gainful.agents.pmevi_dt import PMEVIDT
    from gainful.agents.psrl import PSRL
    from gainful.agents.scal import SCAL
    from gainful.agents.scal_plus import SCALPlus
    from gainful.agents.tucrl import TUCRL
    from gainful.agents.ucbvi import UCBVI
    from gainful.agents.uccrl import UCCRL
    from gainful.agents.ucrl2 import UCRL2
    from gainful.agents.ucrl2b import UCRL2B
    from gainful.agents.ucrl3 import UCRL3
    from gainful.estimation.evaluate_log import LogEvaluation, evaluate_log
    from gainful.estimation.fit import LogFit, fit
    from gainful.experiments.results import results
    from gainful.experiments.run_frames import summary
    from gainful.experiments.sweep import run_experiment
    from gainful.experiments.tune import tune
    from gainful.experiments.until_decided import run_until_decided
    from gainful.live.durable_agent import DurableAgent
    from gainful.live.logs import fit_log
    from gainful.live.opening import open_agent
    from gainful.machine import set_max_memory
    from gainful.mdp.ergodicity import is_ergodic
    from gainful.mdp.model import MDP
    from gainful.mdp.structure import Structure, structure
    from gainful.mdp.units import Units
    from gainful.partition import Partition
    from gainful.planning.discounted import discounted_value_iteration
    from gainful.planning.evaluation import Evaluation, evaluate
    from gainful.planning.extended import extended_value_iteration
    from gainful.planning.finite_horizon import finite_horizon_value_iteration
    from gainful.planning.hitting import diameter, hitting_times
    from gainful.planning.optimality_gaps import optimality_gaps
    from gainful.planning.plan import Plan
    from gainful.planning.policy_iteration import policy_iteration
    from gainful.planning.relative_value_iteration import relative_value_iteration
    from gainful.planning.scopt import scopt
    from gainful.planning.sensitivity import Sensitivity, sensitivity
    from gainful.planning.solve import solve
    from gainful.pseudo_counts.density import DensityCounts
    from gainful.pseudo_counts.hashed import HashedCounts
    from gainful.simulation.many import simulate_many
    from gainful.simulation.run import Run
    from gainful.simulation.simulate import simulate
    from gainful.theory.hardness import Hardness, hardness

# name -> module that defines it; loaded on first use, so that `import gainful` stays instant
_HOME = {
    "MDP": "gainful.mdp.model",
    "Units": "gainful.mdp.units",
    "is_ergodic": "gainful.mdp.ergodicity",
    "Hardness": "gainful.theory.hardness",
    "hardness": "gainful.theory.hardness",
    "Structure": "gainful.mdp.structure",
    "structure": "gainful.mdp.structure",
    "Partition": "gainful.partition",
    "Plan": "gainful.planning.plan",
    "solve": "gainful.planning.solve",
    "scopt": "gainful.planning.scopt",
    "relative_value_iteration": "gainful.planning.relative_value_iteration",
    "policy_iteration": "gainful.planning.policy_iteration",
    "extended_value_iteration": "gainful.planning.extended",
    "discounted_value_iteration": "gainful.planning.discounted",
    "finite_horizon_value_iteration": "gainful.planning.finite_horizon",
    "Evaluation": "gainful.planning.evaluation",
    "evaluate": "gainful.planning.evaluation",
    "diameter": "gainful.planning.hitting",
    "hitting_times": "gainful.planning.hitting",
    "optimality_gaps": "gainful.planning.optimality_gaps",
    "Sensitivity": "gainful.planning.sensitivity",
    "sensitivity": "gainful.planning.sensitivity",
    "SCALPlus": "gainful.agents.scal_plus",
    "BalancedKLSCALPlus": "gainful.agents.balanced_kl_scal_plus",
    "AdaptiveKLSCALPlus": "gainful.agents.adaptive_kl_scal_plus",
    "BalancedGrids": "gainful.agents.balanced_grids",
    "CKLSCALPlus": "gainful.agents.c_kl_scal_plus",
    "CSCALPlus": "gainful.agents.c_scal_plus",
    "UCCRL": "gainful.agents.uccrl",
    "CountBonus": "gainful.agents.count_bonus",
    "HashedCounts": "gainful.pseudo_counts.hashed",
    "DensityCounts": "gainful.pseudo_counts.density",
    "Discretized": "gainful.agents.discretized",
    "Fixed": "gainful.agents.fixed",
    "MBIEEB": "gainful.agents.mbie_eb",
    "IMEDRL": "gainful.agents.imed_rl",
    "OptPSRL": "gainful.agents.opt_psrl",
    "PMEVIDT": "gainful.agents.pmevi_dt",
    "PSRL": "gainful.agents.psrl",
    "UCBVI": "gainful.agents.ucbvi",
    "KLSCALPlus": "gainful.agents.kl_scal_plus",
    "KLUCRL": "gainful.agents.kl_ucrl",
    "SCAL": "gainful.agents.scal",
    "TUCRL": "gainful.agents.tucrl",
    "UCRL2": "gainful.agents.ucrl2",
    "UCRL2B": "gainful.agents.ucrl2b",
    "UCRL3": "gainful.agents.ucrl3",
    "LearnedPolicy": "gainful.agents.learned_policy",
    "learned_policy": "gainful.agents.learned_policy",
    "LipschitzBound": "gainful.agents.lipschitz_bound",
    "lipschitz_lower_bound": "gainful.agents.lipschitz_bound",
    "set_max_memory": "gainful.machine",
    "load_agent": "gainful.agents.files",
    "OptimisticQ": "gainful.agents.optimistic_q",
    "EpsilonGreedyQ": "gainful.agents.epsilon_greedy_q",
    "LogEvaluation": "gainful.estimation.evaluate_log",
    "evaluate_log": "gainful.estimation.evaluate_log",
    "LogFit": "gainful.estimation.fit",
    "fit": "gainful.estimation.fit",
    "results": "gainful.experiments.results",
    "summary": "gainful.experiments.run_frames",
    "DurableAgent": "gainful.live.durable_agent",
    "fit_log": "gainful.live.logs",
    "open_agent": "gainful.live.opening",
    "run_experiment": "gainful.experiments.sweep",
    "run_until_decided": "gainful.experiments.until_decided",
    "tune": "gainful.experiments.tune",
    "Run": "gainful.simulation.run",
    "simulate": "gainful.simulation.simulate",
    "simulate_many": "gainful.simulation.many",
}
_MODULES = ("audit", "environments", "errors", "live", "planning", "plot", "problems", "theory")

__all__ = [
    "IMEDRL",
    "KLUCRL",
    "MBIEEB",
    "MDP",
    "PMEVIDT",
    "PSRL",
    "SCAL",
    "TUCRL",
    "UCBVI",
    "UCCRL",
    "UCRL2",
    "UCRL2B",
    "UCRL3",
    "AdaptiveKLSCALPlus",
    "BalancedGrids",
    "BalancedKLSCALPlus",
    "CKLSCALPlus",
    "CSCALPlus",
    "CountBonus",
    "DensityCounts",
    "Discretized",
    "DurableAgent",
    "EpsilonGreedyQ",
    "Evaluation",
    "Fixed",
    "Hardness",
    "HashedCounts",
    "KLSCALPlus",
    "LearnedPolicy",
    "LipschitzBound",
    "LogEvaluation",
    "LogFit",
    "OptPSRL",
    "OptimisticQ",
    "Partition",
    "Plan",
    "Run",
    "SCALPlus",
    "Sensitivity",
    "Structure",
    "Units",
    "__version__",
    "audit",
    "diameter",
    "discounted_value_iteration",
    "environments",
    "errors",
    "evaluate",
    "evaluate_log",
    "extended_value_iteration",
    "finite_horizon_value_iteration",
    "fit",
    "fit_log",
    "hardness",
    "hitting_times",
    "is_ergodic",
    "learned_policy",
    "lipschitz_lower_bound",
    "live",
    "load_agent",
    "open_agent",
    "optimality_gaps",
    "planning",
    "plot",
    "policy_iteration",
    "problems",
    "relative_value_iteration",
    "results",
    "run_experiment",
    "run_until_decided",
    "scopt",
    "sensitivity",
    "set_max_memory",
    "simulate",
    "simulate_many",
    "solve",
    "structure",
    "summary",
    "theory",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"gainful.{name}")
    else:
        raise AttributeError(f"module 'gainful' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


register_with_gymnasium()
