"""Every deliberate mistake: a new agent's own are in a file of their own, and join `OTHER_MUTANTS`."""

from __future__ import annotations

from tests.audit.mutants import MUTANTS
from tests.audit.mutants_of_adaptive_cells import MUTANTS_OF_ADAPTIVE_CELLS
from tests.audit.mutants_of_balanced_kl_scal_plus import MUTANTS_OF_BALANCED_KL_SCAL_PLUS
from tests.audit.mutants_of_baselines import MUTANTS_OF_BASELINES
from tests.audit.mutants_of_count_bonus import MUTANTS_OF_COUNT_BONUS
from tests.audit.mutants_of_imed_rl import MUTANTS_OF_IMED_RL
from tests.audit.mutants_of_pmevi import MUTANTS_OF_PMEVI
from tests.audit.mutants_of_reward_variance import MUTANTS_OF_REWARD_VARIANCE
from tests.audit.mutants_of_ucrl3 import MUTANTS_OF_UCRL3

OTHER_MUTANTS = (
    *MUTANTS_OF_BASELINES,
    *MUTANTS_OF_COUNT_BONUS,
    *MUTANTS_OF_IMED_RL,
    *MUTANTS_OF_BALANCED_KL_SCAL_PLUS,
    *MUTANTS_OF_PMEVI,
    *MUTANTS_OF_UCRL3,
    *MUTANTS_OF_REWARD_VARIANCE,
    *MUTANTS_OF_ADAPTIVE_CELLS,
)
"""Those that no other test is named beside."""
ALL_MUTANTS = (*MUTANTS, *OTHER_MUTANTS)
