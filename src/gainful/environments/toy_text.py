"""Gymnasium's toy-text environments, whichever version is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gainful.errors import UnknownEnvironmentError
from gainful.mdp.model import MDP


def continuing(
    family: str, label: Callable[[int], str], action_labels: Sequence[str], *, name: str, **options: Any
) -> MDP:
    """The newest installed version of `family` as a continuing MDP on the states that it can reach.

    `label` maps the number of a state in Gymnasium to its label; `options` are passed to gymnasium.make.
    """
    import gymnasium

    env = gymnasium.make(newest(family), **options)
    try:
        mdp = MDP.from_gymnasium(env, drop_unreachable=True, name=name)
    finally:
        env.close()
    numbers = (int(mdp.state_name(s)) for s in range(mdp.n_states))
    return mdp._replace(state_labels=[label(s) for s in numbers], action_labels=tuple(action_labels))


def newest(family: str) -> str:
    """The id with the highest version among Gymnasium's own environments called `family`."""
    import gymnasium

    versions = {
        spec.version: spec.id
        for spec in gymnasium.registry.values()
        if spec.namespace is None and spec.name == family and spec.version is not None
    }
    if not versions:
        raise UnknownEnvironmentError(
            f"Gymnasium {gymnasium.__version__} has no environment '{family}'",
            name="family",
            found=family,
            hint="install a version with toy-text",
        )
    return versions[max(versions)]
