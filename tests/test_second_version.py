"""Files of the second version of every format still open; `python -m tests.test_second_version FOLDER` wrote them."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import gainful as gf
from gainful.agents.labels import AgentLabels
from gainful.experiments.configuration import Configuration
from gainful.experiments.store import Store, without_seed
from tests.bits import V1, step_live

V2 = V1.parent / "v2"
LABELS = AgentLabels(("new", "worn"), ("run", "service"), "cost")
CONFIGURATION = Configuration("toy3d", {}, "fixed", {}, 50, (10, 50), 0)
EXTRA = {"agent_module": "my_module:MyAgent"}


def make(folder: Path) -> None:
    """Write one file or folder of each kind."""
    folder.mkdir(parents=True)
    agent = gf.UCRL2(n_states=2, n_actions=2, reward_min=-1.0, reward_max=0.0)
    agent.labels = LABELS
    for t in range(20):
        agent.observe(t % 2, agent.act(t % 2), -0.5, (t + 1) % 2)
    agent.save(folder / "agent.npz")
    gf.environments.riverswim(3).save(folder / "riverswim.npz")
    gf.simulate(
        gf.UCRL2(n_states=3, n_actions=2),
        gf.environments.riverswim(3),
        horizon=100,
        seed=1,
        checkpoint_file=folder / "checkpoint.npz",
    )
    config = {"agent": "ucrl2", "n_states": 6, "n_actions": 2}
    with gf.open_agent(folder / "live", config, fsync="off", planning="inline", snapshot_every=20) as live:
        step_live(live, 40)
        live.snapshot()
        step_live(live, 5)
    (folder / "store").mkdir()
    with Store.open(folder / "store") as store:
        store.plan("horizon = 50", "one run", [(CONFIGURATION, "toy", "a")], {without_seed(CONFIGURATION): EXTRA})
    for path in folder.rglob("lock"):
        path.unlink()


def test_a_saved_agent_of_the_second_version_opens_with_its_labels() -> None:
    agent = gf.load_agent(V2 / "agent.npz")
    assert (agent.t, agent.labels) == (20, LABELS)


def test_a_saved_mdp_of_the_second_version_opens() -> None:
    assert gf.MDP.load(V2 / "riverswim.npz") == gf.environments.riverswim(3)


def test_a_checkpoint_of_the_second_version_opens(tmp_path: Path) -> None:
    shutil.copy(V2 / "checkpoint.npz", tmp_path)
    agent = gf.UCRL2(n_states=3, n_actions=2)
    run = gf.simulate(
        agent, gf.environments.riverswim(3), horizon=100, seed=1, checkpoint_file=tmp_path / "checkpoint.npz"
    )
    assert int(run.steps[-1]) == agent.t == 100


def test_a_durable_agent_of_the_second_version_opens_without_a_notice(tmp_path: Path) -> None:
    shutil.copytree(V2 / "live", tmp_path / "live")
    with gf.open_agent(tmp_path / "live", fsync="off", planning="inline") as agent:
        assert (agent.t, agent.notices) == (45, [])
    assert (gf.live.read_journal(tmp_path / "live").kind == "observation").sum() == 45


def test_a_store_of_the_second_version_opens(tmp_path: Path) -> None:
    shutil.copytree(V2 / "store", tmp_path / "store")
    with Store.read(tmp_path / "store") as store:
        assert [c.key for c in store.planned()] == [CONFIGURATION.key]
        assert store.extras() == {without_seed(CONFIGURATION): EXTRA}
        assert store.notices == []


if __name__ == "__main__":
    make(Path(sys.argv[1]))
