"""A spec whose agents have different numbers of seeds, as when seeds are added to some of them only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Self

from pydantic import PrivateAttr

from gainful.experiments.configuration import Configuration
from gainful.experiments.spec import Header, Spec
from gainful.experiments.spec_resolution import Labels


class StagedSpec(Spec):
    """A spec with a number of seeds for each agent in each environment: 0, 1, 2 and so on."""

    _counts: dict[Labels, int] = PrivateAttr(default_factory=dict)

    @classmethod
    def of(cls, spec: Spec, counts: Mapping[Labels, int]) -> Self:
        """The same experiment with these numbers of seeds.

        >>> from gainful.experiments.spec import read_spec
        >>> entries = {"environments": [{"name": "toy3d"}], "agents": [{"name": "psrl"}]}
        >>> spec = read_spec({"horizon": 10, "seeds": 2, **entries})
        >>> len(spec), len(StagedSpec.of(spec, {Labels("toy3d", "psrl"): 7}))
        (2, 7)
        """
        names = [*Header.model_fields, "environments", "agents"]
        found = cls.model_construct(**{name: getattr(spec, name) for name in names})
        found._resolved, found._source = spec._resolved, spec._source
        found._text, found._folders = spec.text, spec.folders
        found._counts = dict(counts)
        return found

    def configurations(self) -> list[Configuration]:
        """Every run: by environment, then agent, then seed."""
        first = super().configurations()[:: len(self.seeds)]
        return [
            replace(one, seed=seed)
            for one, labels in zip(first, self.pairs(), strict=True)
            for seed in range(self._counts[labels])
        ]

    def pairs(self) -> list[Labels]:
        """Environment and agent of every pair, in order."""
        return super().labels[:: len(self.seeds)]

    @property
    def labels(self) -> list[Labels]:
        """The labels of each run, in the order of `configurations`."""
        return [labels for labels in self.pairs() for _ in range(self._counts[labels])]

    def __len__(self) -> int:
        return sum(self._counts.values())
