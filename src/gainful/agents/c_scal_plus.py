"""C-SCAL+: SCAL+ on the cells of a partition of a continuous state space."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from gainful.agents.guarantee import Guarantee
from gainful.agents.partitioned import SmoothAgent
from gainful.agents.planning_agent import Episodes
from gainful.agents.refinement import RefiningPartition, TransitionLog, count_again
from gainful.agents.scal_plus import Bonus, Mixture, Replanning, SCALPlus
from gainful.agents.smoothness import Ends, Smoothness, box_to_cut, checked_horizon, checked_partition
from gainful.arguments import AddedLater, whole
from gainful.errors import InvalidArgumentError
from gainful.optimism.c_scal_plus import holder_term, regret_exponent
from gainful.partition import Outside, Partition


class CSCALPlus(SmoothAgent):
    r"""C-SCAL+ (Qian, Fruit, Pirotta & Lazaric, sec. 4): SCAL+ on the cells of a continuous state space.

    SCAL+ runs on the cells of a partition, S cells in all and n per axis (the coarsest axis, if they differ), with the
    Hölder term (c + r_max)·L·n^{-α} added to every bonus: states of one cell differ by at most that much. The term is
    one constant on a uniform partition, and ScOpt commutes with it. So the policy executed is that of SCAL+ on the
    cells, and only its optimistic gain moves (with `mixture="min-action"` the weights move too).

    With probability 1-δ the regret is Õ(max{c, r_max}·L^{1/(α+1)}·A^{α/(2α+2)}·T^{(α+2)/(2α+2)}) for d = 1 and the
    n of `horizon`, if T ≥ L^{2/α}·A, and Õ(T^{(2d+α)/(2d+2α)}) in d dimensions.

    With `bonus="sharp"` the number of pairs K·A takes the place of S in SCAL+'s β (K cells; K·A·n(n+1) if n grows with
    the horizon), because the optimal action may vary inside a cell. The order is the same, with probability 1-3δ.

    Parameters
    ----------
    n_actions : int
        The number of actions A.
    span : float
        A bound c on the span of the optimal bias, sp(h*) ≤ c, in the units of the rewards.
    partition : Partition, optional
        The cells. Without one the agent cuts the box described by `dim`, `low`, `high`, `box` and `outside` itself.
    lipschitz, holder : float, optional
        L > 0 and α in (0, 1] with |r(x,a) - r(y,a)| ≤ r_max·L·‖x-y‖^α and ‖p(·|x,a) - p(·|y,a)‖₁ ≤ L·‖x-y‖^α, in the
        sup-norm and with the box scaled to [0, 1]^d. Without them the Hölder term is 0 and there is no guarantee.
    reward_max, reward_min : float
        The range of the rewards.
    delta : float
        The probability with which the guarantee may fail.
    seed : int
        The seed of the agent's own draws.
    allowed : array_like, optional
        (cells, A) the actions each cell has.
    bonus, bonus_scale, mixture, replanning
        As for `SCALPlus`; `bonus_scale` multiplies β and not the Hölder term.
    horizon : float, optional
        The number of steps T, for which a box is cut into n = ⌈((α/d)·L·sqrt(T/A))^{1/(d+α)}⌉ intervals per axis.
        Without a partition and a horizon T doubles: stage i has the cells of T = 2^i·1024 and ends after that many
        steps. The next decision then counts all transitions again on the finer cells (they are kept, 16·d + 12 bytes
        each), keeps the clock and begins an episode. Where n stays the same, nothing happens.
    dim, low, high, box, outside
        The box to cut: [low, high] in `dim` dimensions, by default [0, 1]^dim, or a Gymnasium `box`; see
        `Partition.from_box`.
    stage : int
        The stage of the doubling horizon to begin with; for files.
    episodes : {"doubling", "vanishing", "vanishing-sqrt"}
        The rule that ends episodes, as for `KLSCALPlus`.

    Raises
    ------
    InvalidArgumentError
        If an argument is invalid, or a partition is given together with a box.

    Examples
    --------
    >>> import gainful as gf
    >>> cells = gf.Partition.uniform(bins=20)
    >>> agent = gf.CSCALPlus(partition=cells, n_actions=3, span=2.0, lipschitz=1.0, holder=1.0)
    >>> action = agent.act(0.31)
    >>> agent.observe(0.31, action, 0.5, 0.33)
    >>> agent.model_error  # 3·1/20
    0.15000000000000002
    """

    core: SCALPlus

    def __init__(
        self,
        *,
        n_actions: int,
        span: float,
        partition: Partition | dict[str, Any] | None = None,
        lipschitz: float | None = None,
        holder: float | None = None,
        reward_max: float = 1.0,
        reward_min: float = 0.0,
        delta: float = 0.05,
        seed: int = 0,
        allowed: ArrayLike | None = None,
        bonus: Bonus = "appendix",
        bonus_scale: float = 1.0,
        mixture: Mixture = "copy",
        replanning: Replanning | None = None,
        horizon: float | None = None,
        dim: int | None = None,
        low: Ends = None,
        high: Ends = None,
        box: Any = None,
        outside: Outside | None = None,
        stage: int = 0,
        episodes: Annotated[Episodes, AddedLater("doubling")] = "doubling",
    ) -> None:
        self.smoothness, self.horizon = Smoothness(lipschitz, holder), checked_horizon(horizon)
        stage = whole("stage", stage, 0, 50)
        self._options: dict[str, Any] = {
            "n_actions": n_actions,
            "span": span,
            "reward_max": reward_max,
            "reward_min": reward_min,
            "delta": delta,
            "seed": seed,
            "bonus": bonus,
            "bonus_scale": bonus_scale,
            "mixture": mixture,
            "replanning": replanning,
            "episodes": episodes,
        }
        if bonus == "authors":
            raise InvalidArgumentError(
                "bonus",
                bonus,
                "'appendix', 'main text' or 'sharp'",
                "SCALPlus on the cells of a partition takes it: Discretized(SCALPlus, partition, bonus='authors')",
                problem="the authors' constants are those of their finite experiments, without a term for cells",
            )
        if bonus == "bernstein":
            raise InvalidArgumentError(
                "bonus",
                bonus,
                "'appendix', 'main text' or 'sharp'",
                problem="the proof of the Bernstein bonus is not for cells, whose visits have different laws",
            )
        SCALPlus(1, **self._options)  # its errors come before those of the cells
        self._refining: RefiningPartition | None = None
        if partition is not None:
            self.partition = checked_partition(partition, dim=dim, low=low, high=high, box=box, outside=outside)
        else:
            self.space = box_to_cut(dim, low, high, box, outside)
            if self.horizon is None:
                self._refine_by_doubling(self.space, stage, allowed)
            else:
                self.partition = self.space.with_bins(self._bins(self.horizon))
        self.core = self._scal_plus(allowed)

    def _refine_by_doubling(self, box: Partition, stage: int, allowed: ArrayLike | None) -> None:
        """Begin with the cells of this stage, and keep all transitions for later ones."""
        self._refining = RefiningPartition(box, self._bins, stage)
        self.partition, self.refines_at = self._refining.partition, self._refining.horizon
        if allowed is not None and not np.all(allowed):
            raise InvalidArgumentError(
                "allowed",
                allowed,
                hint="give a partition or a horizon",
                problem="allowed is a mask on cells, which change here",
            )
        self.log = TransitionLog(box.dim)

    def _bins(self, horizon: int) -> int:
        """The theorem's number of intervals per axis for this horizon."""
        assert self.space is not None
        return self.smoothness.bins(horizon, self._options["n_actions"], self.space.dim)

    def _scal_plus(self, allowed: ArrayLike | None = None) -> SCALPlus:
        """SCAL+ on the present cells, with the Hölder term."""
        agent = SCALPlus(self.partition.n_cells, **self._options, allowed=allowed)
        agent.n_deviations = self._n_deviations
        if self.smoothness.constants is not None:
            L, alpha = self.smoothness.constants
            agent.model_error = holder_term(agent.span, agent.reward_range, L, alpha, min(self.partition.bins))
        return agent

    @property
    def _n_deviations(self) -> int:
        """The deviations that the sharp bonus bounds: of all K·A pairs, for π* may vary inside a cell.

        If n grows with the horizon, the cells of every n have the share 1/(n(n+1)) of δ.
        """
        pairs, n = self.partition.n_cells * int(self._options["n_actions"]), min(self.partition.bins)
        return pairs * n * (n + 1) if self.doubling else pairs

    # ------------------------------------------------------------------ refinement

    def refine(self) -> None:
        """If a stage is over, begin the next one: count all transitions seen again on its cells."""
        if self._refining is None or self.t < self.refines_at:
            return
        changed = self._refining.advance(self.t)
        self.refines_at = self._refining.horizon
        if changed:
            assert self.log is not None
            self.partition, old = self._refining.partition, self.core
            new = self._scal_plus()
            count_again(self.log, self.partition, new)
            new.t, new.records, new.on_episode = old.t, old.records, old.on_episode
            self.core = new

    def resize(self, settings: dict[str, Any]) -> None:
        """Take the cells of the stage in these settings, with nothing counted on them yet."""
        if self._refining is not None and int(settings["stage"]) != self._refining.stage:
            self._refining.start(int(settings["stage"]))
            self.partition, self.refines_at = self._refining.partition, self._refining.horizon
            on_episode, self.core = self.core.on_episode, self._scal_plus()
            self.core.on_episode = on_episode

    # ------------------------------------------------------------------ what it is

    @property
    def span(self) -> float:
        """The bound c on sp(h*)."""
        return self.core.span

    @property
    def bonus_scale(self) -> float:
        """The factor of β; the theorem's value is 1."""
        return self.core.bonus_scale

    @property
    def model_error(self) -> float:
        """The Hölder term (c + r_max)·L·n^{-α}, added to every bonus."""
        return self.core.model_error

    @property
    def doubling(self) -> bool:
        """Whether the partition is refined whenever the number of steps has doubled."""
        return self._refining is not None

    @property
    def stage(self) -> int:
        """The stage of the doubling horizon; 0 if the cells stay as they are."""
        return 0 if self._refining is None else self._refining.stage

    def settings(self) -> dict[str, Any]:
        """The arguments that recreate this agent."""
        kept = {**super().settings(), "replanning": self._options["replanning"]}
        return {**kept, "stage": self.stage} if self.doubling else kept

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the theorem on C-SCAL+, void if the constants were changed."""
        source = "Qian, Fruit, Pirotta & Lazaric, theorem on C-SCAL+" + self._beyond_the_theorem()
        if self.core.bonus == "sharp":
            doubling = ", doubling horizons by our own argument" if self.doubling else ""
            source = f"proved in docs/kl_scal_plus.md, the sharp bonus on cells{doubling}"
        return Guarantee(
            bound=self._bound(self.holder or 1.0, self.dim),
            assumptions=self.assumptions(),
            source=self.core.source_with_episodes(source),
            reason_void=self._reason_void(),
            span=self.span,
            smoothness=self.smoothness.constants,
        )

    def _bound(self, alpha: float, d: int) -> str:
        power = "(α+2)/(2α+2)" if d == 1 else "(2d+α)/(2d+2α)"
        rate = f"Õ(T^({power})) = Õ(T^{regret_exponent(alpha, d):.4g})"
        if self.core.episode_rule == "vanishing-sqrt":
            rate += " + Õ(c·S·A·sqrt(T))"
        failures = 3 if self.core.bonus == "sharp" else 1
        chance = f"with probability {1 - failures * self.delta:g}"
        if self.space is not None:
            when = "all T at once" if self.horizon is None else f"at T = {self.horizon}"
            return f"regret {rate} {chance}, {when}, for T ≥ L^(2/α)·A"
        return (
            f"regret Õ(max{{c, r_max}}·(S·sqrt(A·T) + L·n^(-α)·T)), S = {self.n_states} cells, "
            f"n = {min(self.partition.bins)} per axis, {chance}; {rate} where n is the theorem's for T, T ≥ L^(2/α)·A"
        )

    def _beyond_the_theorem(self) -> str:
        """What goes beyond the theorem, which is proven for one dimension and a known horizon."""
        more = ["d > 1 by their remark"] if self.dim > 1 else []
        more += ["doubling horizons by our own argument"] if self.doubling else []
        return f" ({', '.join(more)})" if more else ""

    def _reason_void(self) -> str:
        if self.core.reason_void:
            return self.core.reason_void
        if self.partition.outside == "clip":
            return "outside is 'clip': the end cells hold states farther apart than their sides"
        return self.smoothness.reason_void
