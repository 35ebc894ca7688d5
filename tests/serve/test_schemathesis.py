"""The service against its own description: requests that schemathesis makes up find no server error."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

from tests.serve.service import Running


def test_made_up_requests_find_no_server_error(service: Running, tmp_path: Path) -> None:
    service.make("fuzzed")
    config = tmp_path / "schemathesis.toml"
    config.write_text('[parameters]\n"path.id" = "fuzzed"\n')
    command = [
        str(Path(sysconfig.get_path("scripts")) / "schemathesis"), "--config-file", str(config), "run",
        f"{service.url}/openapi.json", "--max-examples", "20", "--seed", "1", "--no-color",
        "--header", f"Authorization: Bearer {service.admin}", "--exclude-operation-id", "archive_agent",
        "--checks", "all", "--exclude-checks", "positive_data_acceptance",  # what is in range is the agent's to say
    ]  # fmt: skip
    environment = {**os.environ, "HOME": str(tmp_path), "NO_COLOR": "1"}
    found = subprocess.run(command, capture_output=True, text=True, timeout=110, cwd=tmp_path, env=environment)
    assert found.returncode == 0, found.stdout[-8000:] + found.stderr[-2000:]
    assert service.ask("GET", "/healthz", "").status_code == 200
    counted = service.ask("GET", "/metrics", "").text
    assert 'status="500"' not in counted
    assert 'route="/agents/{id}/observe",method="POST",status="200"' in counted  # some were granted too
