"""Figures for papers, with matplotlib: regret curves, final regrets, profiles, graphs of MDPs, cells, gain estimates.

Every function returns a matplotlib Figure, which a notebook shows and `figure.savefig("name.pdf")` writes; given `ax`,
it draws on these axes. No function uses pyplot or changes a global setting. Install matplotlib with
`pip install 'gainful[figures]'`.
"""

from gainful.plot.cells import partition
from gainful.plot.curves import regret
from gainful.plot.estimates import episodes
from gainful.plot.files import figures
from gainful.plot.finals import distribution, profile
from gainful.plot.graph import mdp
from gainful.plot.log_regret import log_regret
from gainful.plot.splits import splits

__all__ = ["distribution", "episodes", "figures", "log_regret", "mdp", "partition", "profile", "regret", "splits"]
