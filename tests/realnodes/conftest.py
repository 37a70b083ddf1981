"""A real cluster for each test that asks for one; where none can run, the test is skipped."""

import sys
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.realnodes import machine
from tests.realnodes.building import ensure_node_programs
from tests.realnodes.cluster import RealCluster, real_cluster
from tests.realnodes.images import ensure_images

_MEASURED: Final[list[str]] = []

Measured = Callable[[str, float], None]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build programs and images before the first test's timeout runs: cold, it takes minutes."""
    wanted = any("cluster" in getattr(item, "fixturenames", ()) for item in session.items)
    if wanted and not session.config.option.collectonly and not machine.missing():
        ensure_images(ensure_node_programs().pause)


def pytest_unconfigure() -> None:
    """Print what was measured as the last line: a certificate quotes it."""
    if _MEASURED:
        sys.stderr.write(f"\nmeasured: {', '.join(_MEASURED)}\n")


@pytest.fixture
def cluster() -> Iterator[RealCluster]:
    """Two real nodes and their control plane; the test is skipped, with the reason, without."""
    if why := machine.missing():
        pytest.skip(why)
    with real_cluster() as running:
        yield running


@pytest.fixture
def measured() -> Measured:
    """Notes a figure and how many seconds it was."""
    return lambda what, seconds: _MEASURED.append(f"{what} {seconds:.1f} s")
