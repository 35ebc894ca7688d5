"""One service shared by the tests that only send requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serve.service import Running, served


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service in which every agent belongs to the test that created it."""
    with served(tmp_path_factory.mktemp("service") / "agents", "--max-body", "20KB", "--max-pending", "5") as running:
        yield running
        assert running.stop() == 0
        assert not any("Traceback" in line for line in running.said), "".join(running.said)
