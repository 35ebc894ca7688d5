"""`gainful export` and `gainful recover` on the folder of a durable agent, as the installed command does them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

import gainful as gf
from tests.cli.conftest import Gainful


def lived(path: Path, steps: int = 40) -> Path:
    with gf.open_agent(path, {"agent": "scal-plus", "n_states": 3, "n_actions": 2, "span": 2.0}) as agent:
        for t in range(steps):
            agent.observe(t % 3, agent.act(t % 3), 0.5, (t + 1) % 3)
    return path


def test_a_journal_is_exported_as_a_table(gainful: Gainful, tmp_path: Path) -> None:
    folder, file = lived(tmp_path / "pump"), tmp_path / "pump.csv"
    found = gainful("export", str(folder), "--csv", str(file), "--json")
    assert found.code == 0, found.err
    table = pd.read_csv(file)
    assert (table["kind"] == "observation").sum() == 40
    assert (table["kind"] == "decision").sum() == 40


def test_a_damaged_journal_is_saved_into_a_new_folder(gainful: Gainful, tmp_path: Path) -> None:
    folder, out = lived(tmp_path / "pump" / "journal"), tmp_path / "saved"
    journal = max(folder.glob("journal*"), key=lambda path: path.stat().st_size)
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 0xFF
    journal.write_bytes(data)
    found = gainful("recover", str(folder.parent), str(out), "--json")  # as `gainful serve` keeps its agents
    assert found.code == 0, found.err
    assert found.data["observations"] == 40  # the snapshot made when it was closed has them all
    assert found.data["gaps"]  # its table lacks the damaged one
    with gf.open_agent(out) as agent:
        assert agent.t == found.data["observations"]


def test_what_is_no_agent_is_refused(gainful: Gainful, tmp_path: Path) -> None:
    found = gainful("recover", str(tmp_path), str(tmp_path / "out"))
    assert found.code in (1, 2)
    assert "Traceback" not in found.err
    assert found.out == ""
