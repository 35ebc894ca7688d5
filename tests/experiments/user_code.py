"""A user's own module and table, as files, for tests of names."""

from __future__ import annotations

import sys
from pathlib import Path

AGENTS = '''
import numpy as np
import gainful as gf
from gainful.agents.episodic import EpisodePlan, EpisodicAgent
from {helper} import FIRST


class Uniform(EpisodicAgent):
    """Plays every action that a state has with the same probability."""

    def __init__(self, n_states: int, n_actions: int, *, b: float = 1.0, **options):
        super().__init__(n_states, n_actions, **options)
        self.b = float(b)

    def plan(self, statistics, t):
        p = self.allowed / self.allowed.sum(axis=1, keepdims=True)
        zeros = np.zeros(self.n_states)
        return EpisodePlan(
            actions=zeros.astype(np.int64), probabilities=p, gain_bounds=(0.0, 1.0), values=zeros, sweeps=0
        )

    def settings(self):
        return {{**super().settings(), "b": self.b}}


class Plain:
    """Neither a subclass nor anything else."""

    def __init__(self, n_actions, allowed, greed: int = 3):
        self.allowed = allowed

    def act(self, state):
        return int(np.flatnonzero(self.allowed[state])[FIRST])

    def observe(self, state, action, reward, next_state):
        pass


def make(n_states, n_actions, allowed, reward_min, reward_max, seed, epsilon: float = 0.2):
    options = {{"reward_min": reward_min, "reward_max": reward_max, "allowed": allowed}}
    return gf.EpsilonGreedyQ(n_states, n_actions, epsilon=epsilon, seed=seed, **options)


def river(n: int = 3):
    return gf.environments.riverswim(n)


small = gf.environments.riverswim(3)
an_agent = gf.UCRL2(3, 2)


class Broken:
    def __init__(self):
        raise RuntimeError("no luck")
'''

TABLE = """state,action,next_state,probability,reward
ok,run,ok,0.9,1
ok,run,worn,0.1,1
worn,run,worn,1.0,0.2
worn,service,ok,1.0,-0.5
"""


def write_module(folder: Path, name: str) -> None:
    """A module of this name, and its helper, in a folder."""
    (folder / f"{name}.py").write_text(AGENTS.format(helper=f"{name}_helper"), encoding="utf-8")
    (folder / f"{name}_helper.py").write_text("FIRST = 0\n", encoding="utf-8")


def forget(name: str) -> None:
    """Let the module be imported anew, as by a new process."""
    for module in (name, f"{name}_helper"):
        sys.modules.pop(module, None)
