"""The terms that a regret bound is the sum of: what all bounds have in common."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class BoundTerms:
    """Terms of a regret bound: every field of a subclass is one, in units of reward.

    Attributes
    ----------
    total : float
        Their sum.

    Examples
    --------
    >>> from gainful.theory.regret import RegretTerms
    >>> isinstance(RegretTerms(4.0, 3.0, 1.0, 1.5, 0.5), BoundTerms)
    True
    """

    @property
    def total(self) -> float:
        """The bound on the regret: the sum of all terms."""
        return sum(self.to_dict().values())

    def to_dict(self) -> dict[str, float]:
        """Give the terms by name.

        Returns
        -------
        dict of str to float
            One entry per term, in units of reward.
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}
