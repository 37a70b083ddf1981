"""One oracle process for all tests of a session."""

from collections.abc import Iterator

import pytest

from tests.controlplane.binaries import ensure_oracle
from tests.oracle.scheduler import SchedulerOracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[SchedulerOracle]:
    """kube-scheduler's filters."""
    running = SchedulerOracle(ensure_oracle())
    yield running
    running.close()
