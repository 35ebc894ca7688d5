"""One plain file per MDP: equal to the bit, whole or untouched, never unpickled."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from gainful.errors import InvalidArgumentError, InvalidMDPError
from gainful.mdp.model import MDP
from tests.strategies import mdps


def example() -> MDP:
    return MDP(
        np.random.default_rng(1).dirichlet(np.ones(4), size=(4, 2)),
        np.arange(8.0).reshape(4, 2),
        objective="cost",
        state_labels=["ä", "b", "c", "d"],
        start=[0.1, 0.2, 0.3, 0.4],
        name="öd",
    )


def changed(path: Path, **changes: Any) -> None:
    """Write the archive again, without a checksum, as version 1 was; None drops an array."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(arrays["header"].tobytes()) | {"version": 1}
    for key, value in changes.items():
        if key in header:
            header[key] = value
        elif value is None:
            del arrays[key]
        else:
            arrays[key] = value
    if "header" in arrays and "header" not in changes:
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    with open(path, "wb") as file:
        np.savez(file, **arrays)


@given(
    mdps(disallowed=True, labels=True, costs=True, laws=("deterministic", "bernoulli", "transition"), random_start=True)
)
def test_a_saved_mdp_comes_back_to_the_bit(mdp: MDP) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for each in (mdp, mdp.normalised()):
            each.save(f"{folder}/m")
            again = MDP.load(f"{folder}/m")
            assert again == each
            assert again.probabilities.tobytes() == each.probabilities.tobytes()
            assert again.start.tobytes() == each.start.tobytes()
            assert not again.probabilities.flags.writeable


def test_name_labels_units_and_the_exact_path_are_kept(tmp_path: Path) -> None:
    mdp = MDP.from_rates([[[0, 0.3]], [[0.7, 0]]], [0.1, 0.2], state_labels=["x y", "ß"], name="queue").normalised()
    path = tmp_path / "without suffix"
    mdp.save(path)
    assert os.listdir(tmp_path) == ["without suffix"]
    again = MDP.load(str(path))
    assert again == mdp
    assert again.name == "queue"
    assert again.units == mdp.units


def test_saving_again_replaces_the_file_and_gives_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "m.mdp"
    path.write_text("old")
    example().save(path)
    first = path.read_bytes()
    example().save(path)
    assert path.read_bytes() == first


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.mdp"
    path.write_bytes(b"precious")

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    mdp = example()
    with pytest.raises(InvalidArgumentError, match=r"cannot save to .*m\.mdp: No space left on device"):
        mdp.save(path)
    assert path.read_bytes() == b"precious"
    assert os.listdir(tmp_path) == ["m.mdp"]


def test_saving_to_nowhere_is_named(tmp_path: Path) -> None:
    mdp = example()
    with pytest.raises(InvalidArgumentError, match=r"the folder .*nowhere does not exist; create it first"):
        mdp.save(tmp_path / "nowhere" / "m.mdp")
    with pytest.raises(InvalidArgumentError, match="it is a folder; give the name of a file"):
        mdp.save(tmp_path)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    example().save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert MDP.load(tmp_path / "real") == example()


@pytest.mark.parametrize("part", [0.001, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_named(tmp_path: Path, part: float) -> None:
    path = tmp_path / "m.mdp"
    example().save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(InvalidMDPError, match=r"m.mdp: (truncated or damaged|not a saved MDP|the file is empty)"):
        MDP.load(path)


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    path = tmp_path / "m.mdp"
    mdp = example()
    mdp.save(path)
    content = bytearray(path.read_bytes())
    at = bytes(content).index(mdp.probabilities.tobytes())
    content[at + 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(InvalidMDPError, match=r"m.mdp: truncated or damaged: its checksum is wrong; restore a copy"):
        MDP.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file; check the path"),
        (b"", "the file is empty"),
        (b"state,action\n", "not a saved MDP .*; for a table use MDP.from_table"),
        (b"PK\x03\x04 but no archive", "truncated or damaged"),
    ],
)
def test_foreign_files_are_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "m.mdp"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidMDPError, match=message):
        MDP.load(path)


def test_a_folder_and_foreign_archives_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidMDPError, match="cannot be read"):
        MDP.load(tmp_path)
    np.savez(tmp_path / "other.npz", x=np.arange(3))
    with pytest.raises(InvalidMDPError, match="a NumPy archive, but not a saved MDP"):
        MDP.load(tmp_path / "other.npz")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(InvalidMDPError, match=r"x.zip: "):
        MDP.load(tmp_path / "x.zip")


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "m.mdp"
    example().save(path)
    changed(path, start=np.array([print], dtype=object))
    with pytest.raises(InvalidMDPError, match="truncated or damaged: Object arrays cannot be loaded"):
        MDP.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 3}, "written in version 3 of the format, this gainful reads up to 2; upgrade gainful"),
        ({"version": 2}, "the checksum at its end is missing"),
        ({"version": True}, "its version is True"),
        ({"version": "x"}, "its version is 'x'"),
        ({"format": "other"}, "a NumPy archive, but not a saved MDP"),
        ({"header": np.frombuffer(b"{", dtype=np.uint8)}, "its header is not JSON"),
        ({"header": np.zeros(3)}, "not a saved MDP"),
        ({"units": {"objective": "cost", "scale": 2}}, "its header lacks or garbles .*scale"),
        ({"units": {"objective": "luck"}}, "truncated or damaged: objective is 'luck'"),
        ({"reward_law": "luck"}, "truncated or damaged: reward_law is 'luck'"),
        ({"reward_law": "transition"}, "it holds the arrays .*, expected .*entry_rewards"),
        ({"n_states": 5}, r"array 'indptr' has shape \(9,\)"),
        ({"state_labels": ["a"]}, "state_labels has 1 names, expected 4"),
        ({"start": None}, "it holds the arrays"),
        ({"extra": np.zeros(1)}, "it holds the arrays .*extra"),
        ({"start": np.zeros(4)}, "truncated or damaged: start sums to 0"),
        ({"start": np.zeros(4, dtype=np.float32)}, "array 'start' has shape .* and dtype float32"),
        ({"probabilities": np.full(32, 0.3)}, r"truncated or damaged: P\[0, 0\] \(state 'ä', action '0'\) sums to 1.2"),
        ({"indices": np.full(32, 7, dtype=np.uint32)}, "moves to state 7, expected 0 … 3"),
        ({"indices": np.zeros(32, dtype=np.uint32)}, "truncated or damaged: array 'ind.*' does not agree"),
        ({"pair_rewards": np.full(8, np.nan)}, "the (reward|cost) of .* is nan"),
    ],
)
def test_damaged_content_is_named(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "m.mdp"
    example().save(path)
    changed(path, **changes)
    with pytest.raises(InvalidMDPError, match=f"m.mdp: .*{message}"):
        MDP.load(path)
