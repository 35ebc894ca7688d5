"""What the theorems say in numbers: explicit regret bounds, and the equations that the audit compares agents with.

They are written from the papers in plain NumPy, independently of the compiled code of the agents: an equation that is
wrong in one of the two places disagrees with the other.
"""

from gainful.theory.asymptotic import AsymptoticSlope, asymptotic_slope
from gainful.theory.balancing import balanced_bases, balanced_choice, balanced_deviation, balanced_proven_gain
from gainful.theory.baselines import (
    mbie_eb_bonus,
    opt_psrl_lower,
    opt_psrl_reward,
    opt_psrl_samples,
    opt_psrl_threshold,
    optimistic_q_bonus,
    optimistic_q_horizon,
    ucbvi_bonus,
)
from gainful.theory.equations import (
    authors_bonus,
    scal_plus_beta,
    scal_plus_bonus,
    scal_plus_deviation,
    scal_plus_phi,
)
from gainful.theory.imed_rl import (
    imed_rl_divergence,
    imed_rl_estimates,
    imed_rl_index,
    imed_rl_optimum,
    imed_rl_skeleton,
)
from gainful.theory.kl import binary_kl, c_kl_scal_plus_radius, kinf, kl_scal_plus_radius, klmax, klup, klup_by_variance
from gainful.theory.kl_regret import (
    CKLScalPlusTerms,
    KLScalPlusTerms,
    c_kl_scal_plus_terms,
    kl_scal_plus_terms,
    value_range,
)
from gainful.theory.known_bounds import why_no_bound
from gainful.theory.local_hardness import effective_supports, local_diameters
from gainful.theory.pseudo_counts import density_counts, hashed_counts, pseudo_count_bonus
from gainful.theory.regret import (
    RegretTerms,
    episodes_bound,
    lower_bound,
    lower_bound_needs,
    regret_bound,
    regret_terms,
)
from gainful.theory.sets import (
    kl_ucrl_radius,
    kl_ucrl_reward_width,
    scal_floor,
    scal_width,
    tucrl_radius,
    tucrl_truncated,
    uccrl_radius,
    uccrl_reward_width,
    ucrl2_radius,
    ucrl2_reward_width,
    ucrl2b_width,
)
from gainful.theory.sharp import bernstein_bonus, sharp_beta, sharp_bonus
from gainful.theory.sharp_regret import SharpTerms, sharp_terms
from gainful.theory.ucrl3 import bernoulli_proxy, ucrl3_bounds, ucrl3_level, ucrl3_reward_width, ucrl3_terms
from gainful.theory.ucrl3_regret import UCRL3Terms, ucrl3_regret_terms

__all__ = [
    "AsymptoticSlope",
    "CKLScalPlusTerms",
    "KLScalPlusTerms",
    "RegretTerms",
    "SharpTerms",
    "UCRL3Terms",
    "asymptotic_slope",
    "authors_bonus",
    "balanced_bases",
    "balanced_choice",
    "balanced_deviation",
    "balanced_proven_gain",
    "bernoulli_proxy",
    "bernstein_bonus",
    "binary_kl",
    "c_kl_scal_plus_radius",
    "c_kl_scal_plus_terms",
    "density_counts",
    "effective_supports",
    "episodes_bound",
    "hashed_counts",
    "imed_rl_divergence",
    "imed_rl_estimates",
    "imed_rl_index",
    "imed_rl_optimum",
    "imed_rl_skeleton",
    "kinf",
    "kl_scal_plus_radius",
    "kl_scal_plus_terms",
    "kl_ucrl_radius",
    "kl_ucrl_reward_width",
    "klmax",
    "klup",
    "klup_by_variance",
    "local_diameters",
    "lower_bound",
    "lower_bound_needs",
    "mbie_eb_bonus",
    "opt_psrl_lower",
    "opt_psrl_reward",
    "opt_psrl_samples",
    "opt_psrl_threshold",
    "optimistic_q_bonus",
    "optimistic_q_horizon",
    "pseudo_count_bonus",
    "regret_bound",
    "regret_terms",
    "scal_floor",
    "scal_plus_beta",
    "scal_plus_bonus",
    "scal_plus_deviation",
    "scal_plus_phi",
    "scal_width",
    "sharp_beta",
    "sharp_bonus",
    "sharp_terms",
    "tucrl_radius",
    "tucrl_truncated",
    "ucbvi_bonus",
    "uccrl_radius",
    "uccrl_reward_width",
    "ucrl2_radius",
    "ucrl2_reward_width",
    "ucrl2b_width",
    "ucrl3_bounds",
    "ucrl3_level",
    "ucrl3_regret_terms",
    "ucrl3_reward_width",
    "ucrl3_terms",
    "value_range",
    "why_no_bound",
]
