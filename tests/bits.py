"""Digests of what gainful computes and stores, through its public interface alone.

The files in `tests/data/v1` and the digests beside them were made by the first version of gainful. Every later
version must open the files and reach the same bits. `python -m tests.bits` compares; `python -m tests.bits --make
FOLDER` makes such a folder with the version at hand.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import gainful as gf

V1 = Path(__file__).parent / "data" / "v1"
BEFORE, AFTER = 3_000, 6_000
"""Steps of an agent before it is saved, and after it is loaded."""

TABULAR: dict[str, tuple[str, dict[str, Any]]] = {
    "scal-plus": ("SCALPlus", {"span": 7.0, "bonus_scale": 0.1}),
    "scal-plus-local": ("SCALPlus", {"span": 7.0, "bonus_scale": 0.1, "replanning": "local"}),
    "scal-plus-min-action": ("SCALPlus", {"span": 0.5, "bonus_scale": 0.02, "mixture": "min-action"}),
    "optimistic-q": ("OptimisticQ", {"span": 7.0, "horizon": 10_000}),
    "epsilon-greedy-q": ("EpsilonGreedyQ", {}),
    "mbie-eb": ("MBIEEB", {"discount": 0.9, "m": 100}),
    "opt-psrl": ("OptPSRL", {"horizon": 10_000}),
    "psrl": ("PSRL", {"transition_prior": 1.0, "sampler": "numpy"}),
    "ucbvi": ("UCBVI", {"episode_length": 10, "horizon": 10_000}),
    "kl-ucrl": ("KLUCRL", {"horizon": 10_000}),
    "scal": ("SCAL", {"span": 7.0}),
    "tucrl": ("TUCRL", {"bounds": "ucrl2b"}),
    "ucrl2": ("UCRL2", {}),
    "ucrl2b": ("UCRL2B", {}),
}
CONTINUOUS = ("c-scal-plus", "c-scal-plus-doubling", "uccrl", "discretized")
LIVE = {"agent": "scal-plus", "n_states": 6, "n_actions": 2, "span": 7.0, "bonus_scale": 0.1}
SPEC, SPEC_ON_POINTS, QUICKSTART = "every-agent.toml", "on-points.toml", "quickstart.toml"
OLD_DEFAULTS = {"psrl": '{ transition_prior = 1, sampler = "numpy" }', "tucrl": '{ bounds = "ucrl2b" }'}
"""What a spec of the first version meant when it named these agents without parameters."""


def digest(*parts: Any) -> str:
    """A short digest of arrays, numbers and words."""
    total = hashlib.sha256()
    for part in parts:
        array = np.ascontiguousarray(part)
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(array.tobytes() if array.dtype != object else repr(array.tolist()).encode())
    return total.hexdigest()[:24]


def run_digest(run: gf.Run) -> str:
    """Everything in a run but the time that it took."""
    episodes = [run.episodes[name] for name in ("step", "gain", "gain_low", "gain_high", "span", "sweeps")]
    return digest(run.steps, run.rewards, run.pseudo_regret, np.asarray(run.final_state), *episodes)


def agent_and_environment(name: str) -> tuple[Any, Any]:
    """A new agent, and where it is going to act."""
    if name in TABULAR:
        kind, arguments = TABULAR[name]
        return getattr(gf, kind)(n_states=6, n_actions=2, seed=5, **arguments), gf.environments.riverswim(6)
    if name == "fixed":
        return gf.Fixed(6, 2, policy=[1] * 6, seed=5), gf.environments.riverswim(6)
    lqg = gf.environments.lqg()
    cells = gf.Partition.uniform(bins=12, dim=1)
    smooth: dict[str, Any] = {"n_actions": lqg.n_actions, "span": 2.0, "lipschitz": 1.0, "holder": 1.0, "seed": 5}
    agents: dict[str, Any] = {
        "c-scal-plus": lambda: gf.CSCALPlus(partition=cells, bonus_scale=0.1, **smooth),
        "c-scal-plus-doubling": lambda: gf.CSCALPlus(dim=1, bonus_scale=0.1, **smooth),
        "uccrl": lambda: gf.UCCRL(partition=cells, **smooth),
        "discretized": lambda: gf.Discretized(gf.UCRL2B, cells, n_actions=lqg.n_actions, seed=5),
    }
    return agents[name](), lqg


AGENTS = (*TABULAR, "fixed", *CONTINUOUS)


@contextmanager
def copied(source: Path) -> Iterator[Path]:
    """A copy of a file or folder that may be changed."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / source.name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
        yield target


def new_run(name: str) -> str:
    """A run from the first step."""
    agent, environment = agent_and_environment(name)
    return run_digest(gf.simulate(agent, environment, horizon=BEFORE + AFTER, seed=3))


def continued_agent(name: str, file: Path) -> str:
    """What an agent does that was saved after `BEFORE` steps."""
    _, environment = agent_and_environment(name)
    return run_digest(gf.simulate(gf.load_agent(file), environment, horizon=AFTER, seed=4))


def continued_checkpoint(file: Path) -> str:
    """The rest of a run that was stopped in the middle."""
    agent, environment = agent_and_environment("scal-plus")
    with copied(file) as copy:
        return run_digest(gf.simulate(agent, environment, horizon=100_000, seed=6, checkpoint_file=copy))


def step_live(agent: Any, steps: int) -> str:
    """Act and observe in a process that is a function of the step alone; the actions chosen."""
    chosen = []
    for t in range(agent.t, agent.t + steps):
        state, to = (t * t + 3 * t) % 6, (t * t + 5 * t + 4) % 6
        action = int(agent.act(state))
        chosen.append(action)
        agent.observe(state, action, ((7 * t + 3 * action) % 11) / 11.0, to)
    return digest(chosen)


def continued_live(folder: Path) -> str:
    """What a durable agent does once its folder is opened again."""
    with copied(folder) as copy, gf.open_agent(copy, fsync="off", planning="inline") as agent:
        return digest(agent.t, step_live(agent, 2_000), agent.episodes["step"], agent.episodes["gain"])


def stored(folder: Path) -> dict[str, str]:
    """A digest for every run of a store, by its identity.

    The first version's TUCRL claimed a theorem that does not cover its intervals; its digests hold that claim.
    """
    frame = gf.results(folder)
    frame.loc[frame["agent"] == "tucrl", "guarantee_holds"] = True
    names = ["step", "reward", "regret", "pseudo_regret"]
    facts = ["seed", "horizon", "gain", "span", "episodes", "vacuous", "guarantee_holds", "span_is_oracle"]
    return {
        str(run_id): digest(*(group[name].to_numpy() for name in names), *(group[name].iloc[0] for name in facts))
        for run_id, group in frame.groupby("run_id", observed=True)
    }


def experiment(spec: Path) -> dict[str, str]:
    """Run a spec of the first version, with the defaults of then, in a new folder; a digest for every run."""
    text = spec.read_text(encoding="utf-8")
    for agent, parameters in OLD_DEFAULTS.items():
        text = text.replace(f'name = "{agent}"\n', f'name = "{agent}"\nparameters = {parameters}\n')
    with tempfile.TemporaryDirectory() as folder:
        gf.run_experiment(text, folder, jobs=1)
        return stored(Path(folder))


def resumed_store(folder: Path) -> dict[str, str]:
    """Run the spec of a half-finished store to its end."""
    with copied(folder) as copy:
        gf.run_experiment(V1 / SPEC, copy, jobs=1)
        return stored(copy)


class _StoppedError(Exception):
    """Ends a run in the middle."""


def make(folder: Path) -> None:
    """Write the files and the digests."""
    (folder / "agents").mkdir(parents=True)
    digests: dict[str, Any] = {"new": {}, "agents": {}}
    for name in AGENTS:
        agent, environment = agent_and_environment(name)
        gf.simulate(agent, environment, horizon=BEFORE, seed=3)
        file = folder / "agents" / f"{name}.npz"
        agent.save(file)
        digests["new"][name], digests["agents"][name] = new_run(name), continued_agent(name, file)
    agent, environment = agent_and_environment("scal-plus")

    def stop(t: int, _: int) -> None:
        if t > 20_000:
            raise _StoppedError

    file = folder / "checkpoint.npz"
    try:
        gf.simulate(
            agent, environment, horizon=100_000, seed=6, checkpoint_file=file, checkpoint_every=0.0, progress=stop
        )
    except _StoppedError:
        digests["checkpoint"] = continued_checkpoint(file)
    with gf.open_agent(folder / "live", LIVE, fsync="off", planning="inline", snapshot_every=500) as live:
        step_live(live, 1_700)
        live.act(3)
    digests["live"] = continued_live(folder / "live")
    text = tomllib.loads((V1 / SPEC).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as half:
        fewer = Path(half) / SPEC
        fewer.write_text((V1 / SPEC).read_text(encoding="utf-8").replace(f"seeds = {text['seeds']}", "seeds = 1"))
        gf.run_experiment(fewer, folder / "store", jobs=1)
    digests["store"], digests["every-agent"] = stored(folder / "store"), experiment(V1 / SPEC)
    digests["resumed"] = digests["every-agent"]
    digests["on-points"] = experiment(V1 / SPEC_ON_POINTS)
    digests["quickstart"] = experiment(V1 / QUICKSTART)
    (folder / "digests.json").write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")


def differences(*, quickstart: bool) -> list[str]:
    """What this version computes otherwise than the first one did."""
    expected = json.loads((V1 / "digests.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = {
        "new": {name: new_run(name) for name in AGENTS},
        "agents": {name: continued_agent(name, V1 / "agents" / f"{name}.npz") for name in AGENTS},
        "checkpoint": continued_checkpoint(V1 / "checkpoint.npz"),
        "live": continued_live(V1 / "live"),
        "store": stored(V1 / "store"),
        "resumed": resumed_store(V1 / "store"),
        "every-agent": experiment(V1 / SPEC),
        "on-points": experiment(V1 / SPEC_ON_POINTS),
    }
    if quickstart:
        found["quickstart"] = experiment(V1 / QUICKSTART)
    else:
        del expected["quickstart"]
    return [part for part in expected if found[part] != expected[part]]


if __name__ == "__main__":
    if "--make" in sys.argv:
        make(Path(sys.argv[-1]))
    elif different := differences(quickstart=True):
        sys.exit(f"other bits than version 1: {', '.join(different)}")
    else:
        print("the same bits as version 1")
