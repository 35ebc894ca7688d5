"""The algorithms in dense NumPy, one screen each, in the notation of the papers: slow, and plainly right.

The tests check the compiled agents and planners against these. Nothing else in gainful uses them.
"""

from gainful.reference.c_scal_plus import DenseCSCALPlus
from gainful.reference.episodes import DoublingEpisodes
from gainful.reference.scal_plus import DenseSCALPlus
from gainful.reference.scopt import dense_scopt
from gainful.reference.sharp import DenseSharpSCALPlus
from gainful.reference.ucrl2b import DenseUCRL2B, best_rows
from gainful.reference.ucrl3 import DenseUCRL3, most_inside, near_optimistic_support

__all__ = [
    "DenseCSCALPlus",
    "DenseSCALPlus",
    "DenseSharpSCALPlus",
    "DenseUCRL2B",
    "DenseUCRL3",
    "DoublingEpisodes",
    "best_rows",
    "dense_scopt",
    "most_inside",
    "near_optimistic_support",
]
