"""The service against its own description: requests that schemathesis makes up find no server error."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.serve.service import Running

SMOOTH = {"agent": "c-scal-plus", "n_states": None, "lipschitz": 1.0, "holder": 1.0, "dim": 1}
KINDS: dict[str, dict[str, Any]] = {
    "fuzzed": {},
    "fuzzed-points": {**SMOOTH, "horizon": 10_000.0},
    "fuzzed-doubling": SMOOTH,
    "fuzzed-ucbvi": {"agent": "ucbvi", "span": None, "episode_length": 5, "horizon": 1000.0},
    "fuzzed-q": {"agent": "epsilon-greedy-q", "span": None},
    "fuzzed-labels": {"state_labels": list("abcdef"), "action_labels": ["", "run"], "cost_min": 0.0, "cost_max": 9.0},
}
"""Agents that are asked: `path.id` is one of these."""


REQUESTS = int(os.environ.get("GAINFUL_REQUESTS", "100"))
"""The least number of requests to make up; 10,000 in `make soak`."""


def requests_counted(service: Running) -> int:
    """How many requests the service has answered."""
    text = service.ask("GET", "/metrics", "").text
    found = re.findall(r"^gainful_http_requests_total\{.*\} ([0-9.e+]+)$", text, flags=re.M)
    return round(sum(float(number) for number in found))


@pytest.mark.slow
def test_made_up_requests_find_no_server_error(service: Running, tmp_path: Path) -> None:
    for name, kind in KINDS.items():
        service.make(name, **kind)
    config = tmp_path / "schemathesis.toml"
    known = f"[dictionaries.agents]\nvalues = {json.dumps(list(KINDS))}\n"
    config.write_text(f'{known}[parameters]\n"path.id" = {{dictionary = "agents"}}\n')
    counted, seed = 0, 0
    while counted < REQUESTS:
        seed += 1
        made_up_requests(service, tmp_path, config, seed)
        before, counted = counted, requests_counted(service)
        assert counted > before
    print(f"{counted} requests in {seed} runs")


def made_up_requests(service: Running, tmp_path: Path, config: Path, seed: int) -> None:
    """One run of schemathesis; no answer is a server error."""
    command = [
        str(Path(sysconfig.get_path("scripts")) / "schemathesis"),
        "--config-file",
        str(config),
        "run",
        f"{service.url}/openapi.json",
        "--max-examples",
        "20",
        "--seed",
        str(seed),
        "--request-timeout",
        "60",
        "--no-color",
        "--header",
        f"Authorization: Bearer {service.admin}",
        "--exclude-operation-id",
        "archive_agent",
        "--checks",
        "all",
        "--exclude-checks",
        "positive_data_acceptance",  # what is in range is the agent's to say
    ]
    environment = {**os.environ, "HOME": str(tmp_path), "NO_COLOR": "1"}
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment)
    assert found.returncode == 0, found.stdout[-8000:] + found.stderr[-2000:]
    assert service.ask("GET", "/healthz", "").status_code == 200
    for agent in service.ask("GET", "/agents").json()["agents"]:  # those that it made too
        for path in ("", "/episodes", "/pending"):
            answer = service.ask("GET", f"/agents/{agent['id']}{path}")
            assert answer.status_code == 200, answer.text
    counted = service.ask("GET", "/metrics", "").text
    assert 'status="500"' not in counted
    assert 'route="/agents/{id}/observe",method="POST",status="200"' in counted  # some were granted too
