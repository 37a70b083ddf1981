"""One real cluster for all tests that ask for it; where none can run, they are skipped."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Protocol

import pytest

from tests.realnodes import machine
from tests.realnodes.building import ensure_node_programs
from tests.realnodes.cluster import RealCluster, real_cluster
from tests.realnodes.images import ensure_images
from tests.realnodes.releases import MissingCommitError, former_release, present_release
from tests.realnodes.workload import remove_everything

_FOLDER: Final = Path(__file__).parent
_MEASURED: Final[list[str]] = []

Measured = Callable[[str, float], None]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what nodes run before the first test's timeout runs: cold, it takes minutes."""
    fixtures = fixtures_here(session.items)
    if "cluster" in fixtures and not session.config.option.collectonly and not machine.missing():
        ensure_images(ensure_node_programs().contained)
        present_release()
        if "former" in fixtures:
            # Where the clone is too shallow the test is skipped, with the reason.
            with contextlib.suppress(MissingCommitError):
                former_release()


class Collected(Protocol):
    """A collected test; one that is a function has `fixturenames`, too."""

    @property
    def path(self) -> Path:
        """Its file."""
        ...


def fixtures_here(items: Iterable[Collected]) -> set[str]:
    """The fixtures that tests of this folder ask for. Those of other folders have fixtures of the
    same names, and need no nodes.
    """
    near = (item for item in items if item.path.is_relative_to(_FOLDER))
    return {name for item in near for name in getattr(item, "fixturenames", ())}


def pytest_unconfigure() -> None:
    """Print what was measured as the last line: a certificate quotes it."""
    if _MEASURED:
        sys.stderr.write(f"\nmeasured: {', '.join(_MEASURED)}\n")


@pytest.fixture(scope="session")
def running_cluster() -> Iterator[RealCluster]:
    """Two real nodes and their control plane; tests are skipped, with the reason, without."""
    if why := machine.missing():
        pytest.skip(why)
    with real_cluster() as running:
        yield running


@pytest.fixture(scope="module")
def cluster(running_cluster: RealCluster) -> Iterator[RealCluster]:
    """The cluster without anything of Tutti, as it is left behind, too."""
    yield running_cluster
    assert running_cluster.enforcer.is_running, "NetworkPolicies were not in force"
    remove_everything(running_cluster)


@pytest.fixture
def measured() -> Measured:
    """Notes a figure and how many seconds it was."""
    return lambda what, seconds: _MEASURED.append(f"{what} {seconds:.1f} s")
