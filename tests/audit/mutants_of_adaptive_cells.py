"""Deliberate mistakes in agents that choose their cells; see `mutants`."""

from __future__ import annotations

from tests.audit.mutants import Mutant

ADAPTIVE = ("lqg", "--bins", "13", "--agent", "adaptive-kl-scal-plus", "--span", "1.4")
FINEST = (*("lqg", "--bins", "32", "--agent", "adaptive-kl-scal-plus"), "--span", "1.4", "--agent-set", "start_depth=5")
GRIDS = ("lqg", "--bins", "6", "--agent", "balanced-grids", "--span", "1.4")
_AGENT, _TREES, _GRIDS = "agents/adaptive_kl_scal_plus.py", "agents/dyadic_trees.py", "agents/balanced_grids.py"
_SETS = "optimism/adaptive_cells.py"

MUTANTS_OF_ADAPTIVE_CELLS = (
    Mutant(
        "adaptive cells: split when the deviation is √2 times the bias",
        _AGENT,
        (("narrow_enough(self.split_scale * level", "narrow_enough(0.5 * self.split_scale * level"),),
        ("leaves",),
        "",
        ADAPTIVE,
    ),
    Mutant(
        "adaptive cells: the union over the cells of one depth",
        _AGENT,
        (("log_union_at(j, size,", "log_union_at(0, size,"),),
        ("set-formula",),
        "",
        ADAPTIVE,
    ),
    Mutant(
        "adaptive cells: rows of the first finest cell of a leaf alone",
        _TREES,
        (
            (
                "merge_rows((begin, length,",
                "merge_rows((begin, np.where(self.leaf == np.arange(self.leaf.size), length, 0),",
            ),
        ),
        ("certificate",),
        "",
        ADAPTIVE,
    ),
    Mutant(
        "adaptive cells: an episode's limits for finest pairs, not for leaves",
        _AGENT,
        (("groups=trees.leaf,", "groups=None,"),),
        ("episode-rule",),
        "",
        ADAPTIVE,
    ),
    Mutant(
        "adaptive cells: a bracket on the gain that is 0.1 too high",
        _AGENT,
        (
            (
                "gain_bounds=self._gain_bounds(found)",
                "gain_bounds=(self._gain_bounds(found)[0] + 0.1, self._gain_bounds(found)[1] + 0.1)",
            ),
        ),
        ("certificate",),
        "",
        ADAPTIVE,
    ),
    Mutant(
        "adaptive cells: the last action everywhere",
        _AGENT,
        (
            (
                "actions=found.actions[trees.number],",
                "actions=np.full_like(found.actions[trees.number], self.n_actions - 1),",
            ),
        ),
        ("greedy",),
        "",
        ADAPTIVE,
    ),
    Mutant(
        "adaptive cells: optimistic rewards a tenth as large",
        _SETS,
        (("= kl_upper(min(max(mean, 0.0), 1.0)", "= 0.1 * kl_upper(min(max(mean, 0.0), 1.0)"),),
        ("reward-domination",),
        "",
        FINEST,
    ),
    Mutant(
        "adaptive cells: balls of a thousandth of their radius",
        _SETS,
        (("return scale * deviation_level(", "return 0.001 * scale * deviation_level("),),
        ("bias-domination",),
        "",
        FINEST,
    ),
    Mutant(
        "balanced grids: the grid with the largest claim plays",
        _GRIDS,
        (("np.asarray(self._scale * self._r_max", "np.asarray(-self._scale * self._r_max"),),
        ("grids",),
        "",
        GRIDS,
    ),
    Mutant(
        "balanced grids: the steps of a grid are not counted",
        "agents/turns.py",
        (("self.steps[self.playing] += steps - self.seen_steps", "self.steps[self.playing] += 0"),),
        ("grids",),
        "",
        GRIDS,
    ),
)
