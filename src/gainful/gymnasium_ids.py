"""The environments as Gymnasium ids: gainful/RiverSwim-v0 is `riverswim`, gainful/LQG-v0 is `lqg`, ...

`import gainful` registers all of them without loading Gymnasium or the environments: at once if Gymnasium is loaded,
otherwise when it is. So both orders of import work, `gymnasium.register_envs(gainful)` says to readers what the import
is for, and `gymnasium.make("gainful:gainful/RiverSwim-v0")` needs no import at all. Parameters are passed on:
`gymnasium.make("gainful/RiverSwim-v0", n_states=20)`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

TABULAR = (
    "access-control-queue",
    "admission-control",
    "four-rooms",
    "frozen-lake",
    "garnet",
    "hard-family",
    "inventory-control",
    "machine-replacement",
    "riverswim",
    "riverswim-bourel",
    "riverswim-ergodic",
    "riverswim-maillard",
    "server-routing",
    "six-arms",
    "taxi",
    "toy3d",
    "two-state-toy",
    "weakly-communicating-toy",
)
"""The environments with finitely many states, as `gainful.environments.names` lists them."""
CONTINUOUS = (
    "continuous-inventory",
    "continuous-riverswim",
    "lqg",
    "mountain-car",
    "planar-mixture",
    "replacement",
    "rough-mixture",
    "ship-steering",
)
"""The environments with continuous states, as `gainful.environments.continuous_names` lists them."""
_CAPITALISED = {
    "lqg": "LQG",
    "riverswim": "RiverSwim",
    "toy3d": "Toy3D",
}  # words with unusual capital letters


def gymnasium_id(name: str) -> str:
    """The Gymnasium id of an environment.

    Parameters
    ----------
    name : str
        The name of an environment, as `names` and `continuous_names` list it.

    Returns
    -------
    str

    Examples
    --------
    >>> gymnasium_id("riverswim-ergodic")
    'gainful/RiverSwimErgodic-v0'
    """
    words = "".join(_CAPITALISED.get(word, word.capitalize()) for word in name.split("-"))
    return f"gainful/{words}-v0"


def register_all() -> None:
    """Register every environment with Gymnasium, as a continuing task without a time limit.

    `import gainful` does this already; repeated calls do no harm.

    Examples
    --------
    >>> import gymnasium
    >>> register_all()
    >>> "gainful/RiverSwim-v0" in gymnasium.registry
    True
    """
    from gymnasium.envs.registration import register, registry

    classes = {
        "gainful.environments.gymnasium_env:NamedEnv": TABULAR,
        "gainful.environments.continuous.gymnasium_env:NamedContinuousEnv": CONTINUOUS,
    }
    for entry_point, names in classes.items():
        for name in names:
            if gymnasium_id(name) not in registry:
                register(gymnasium_id(name), entry_point=entry_point, kwargs={"environment": name})


def register_with_gymnasium() -> None:
    """Call `register_all` now if Gymnasium is loaded, otherwise as soon as it is."""
    if "gymnasium" in sys.modules:
        register_all()
    elif not any(isinstance(finder, _OnceGymnasiumLoads) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OnceGymnasiumLoads())


class _OnceGymnasiumLoads:
    """Lets the other finders find Gymnasium, and registers the environments once it has been executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "gymnasium":
            return None
        others = (finder for finder in list(sys.meta_path) if finder is not self)
        found = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in found if spec is not None), None)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                register_all()

            loader.exec_module = execute_and_register
        return spec
