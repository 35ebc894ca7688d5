"""How many bytes of large request bodies the service holds at once, from their arrival to their answer."""

from __future__ import annotations

from collections import Counter
from typing import Any

from gainful.serve.problem_details import ProblemError

FREE = 1 << 16
"""Bytes of every body that do not count: small requests are never delayed by large ones."""
HELD = "gainful.body"


class BodyBudget:
    """Bytes beyond the first `FREE` of each body, summed over all requests in progress.

    Parameters
    ----------
    most : int
        The limit for all requests; those with the key of one agent may hold half of it.
    """

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0
        self._by_agent: Counter[str] = Counter()

    def check(self, scope: Any, size: int) -> None:
        """Reject a request (503) whose body of so many bytes would not fit; nothing is counted yet."""
        extra, agent = size - FREE, _agent(scope)
        if extra > 0 and (self.held + extra > self.most or self._by_agent[agent] + extra > self.most // 2):
            raise ProblemError(
                503,
                "too many large requests are in progress",
                where="service",
                found=f"{self.held + FREE} bytes",
                expected=f"at most {self.most} bytes in all, half of them for one agent",
                hint="send the request again later, or smaller batches",
                headers={"Retry-After": "1", "Connection": "close"},
            )

    def hold(self, scope: Any, size: int) -> None:
        """Count a body of which so many bytes have arrived; 503 if they do not fit."""
        extra = max(0, size - FREE) - scope.get(HELD, 0)
        if extra > 0:
            self.check(scope, FREE + extra)
            self.held += extra
            self._by_agent[_agent(scope)] += extra
            scope[HELD] = scope.get(HELD, 0) + extra

    def release(self, scope: Any) -> None:
        """The request was answered."""
        extra = scope.pop(HELD, 0)
        if extra:
            agent = _agent(scope)
            self.held -= extra
            self._by_agent[agent] -= extra
            if not self._by_agent[agent]:
                del self._by_agent[agent]


def _agent(scope: Any) -> str:
    """The agent that a request is for; "" for a new one."""
    return str(scope.get("path_params", {}).get("id", ""))
