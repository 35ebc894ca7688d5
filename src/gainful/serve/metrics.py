"""Counters and gauges in the text format of Prometheus (version 0.0.4)."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator
from typing import Any

from gainful.serve.agent_registry import AgentRegistry
from gainful.serve.agent_view import summary

METRICS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
DURATION_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper ends of the histogram's buckets, in seconds."""
AGENT_METRICS = (
    ("up", "agent_up", "gauge", "Whether the agent is open."),
    ("observations", "agent_observations_total", "counter", "Observations of the agent."),
    ("sequence", "agent_records_total", "counter", "Records in the journal of the agent."),
    ("episodes", "agent_episodes_total", "counter", "Episodes of the agent, each with a plan."),
    ("pending", "agent_pending_decisions", "gauge", "Decisions that are waiting for their outcomes."),
    ("gain_low", "agent_gain_low", "gauge", "Lower end of the bracket on the optimistic gain (cost)."),
    (
        "gain_high",
        "agent_gain_high",
        "gauge",
        "Upper end of the bracket on the optimistic gain (cost).",
    ),
    ("queue", "agent_queue", "gauge", "Requests that are waiting for the agent."),
    ("syncs", "agent_shared_syncs_total", "counter", "Disk syncs, each shared by one or more requests."),
)
"""Key in `summary`, name, type and description."""


class Metrics:
    """Counts of the requests since the service was started."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], int] = {}
        self._times: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def count(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one request."""
        key = (route, method, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        counts = self._times.get(route)
        if counts is None:
            counts = self._times[route] = [0] * (len(DURATION_BUCKETS) + 1)
        counts[bisect.bisect_left(DURATION_BUCKETS, seconds)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def text(self, registry: AgentRegistry) -> str:
        """All metrics; reads the agents without waiting for them."""
        return "\n".join([*self._of_requests(), *self._of_agents(registry)]) + "\n"

    def _of_requests(self) -> Iterator[str]:
        yield "# HELP gainful_http_requests_total Requests answered."
        yield "# TYPE gainful_http_requests_total counter"
        for (route, method, status), n in sorted(self._requests.items()):
            yield f'gainful_http_requests_total{{route="{route}",method="{method}",status="{status}"}} {n}'
        yield "# HELP gainful_http_request_duration_seconds Time from the head of the request to the response."
        yield "# TYPE gainful_http_request_duration_seconds histogram"
        for route, counts in sorted(self._times.items()):
            total = 0
            for edge, n in zip((*DURATION_BUCKETS, math.inf), counts, strict=True):
                total += n
                le = "+Inf" if math.isinf(edge) else repr(edge)
                yield f'gainful_http_request_duration_seconds_bucket{{route="{route}",le="{le}"}} {total}'
            yield f'gainful_http_request_duration_seconds_sum{{route="{route}"}} {self._seconds[route]!r}'
            yield f'gainful_http_request_duration_seconds_count{{route="{route}"}} {total}'

    def _of_agents(self, registry: AgentRegistry) -> Iterator[str]:
        slots = sorted(registry.slots.values(), key=lambda slot: slot.id)
        values: list[tuple[str, dict[str, Any]]] = []
        for slot in slots:
            agent = slot.agent
            known = {"up": int(agent is not None), "queue": slot.waiting, "syncs": slot.syncs}
            values.append((slot.id, known if agent is None else known | summary(agent)))
        yield "# HELP gainful_agents Agents of the service."
        yield "# TYPE gainful_agents gauge"
        yield f"gainful_agents {len(slots)}"
        for key, name, kind, description in AGENT_METRICS:
            yield f"# HELP gainful_{name} {description}"
            yield f"# TYPE gainful_{name} {kind}"
            for agent_id, known in values:
                if known.get(key) is not None:
                    yield f'gainful_{name}{{agent="{agent_id}"}} {known[key]!r}'
