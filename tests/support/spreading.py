"""How several processes share the tests: what stays together, and what comes first.

A unit of work is a file, as with xdist's own ``--dist loadfile``, or a whole folder where its files
share a control plane that takes long to start. An idle worker takes the next unit; the longest come
first, so that all workers end at about the same time. xdist alone begins with the files
that have the most tests, which are the fast ones.
"""

from typing import Any, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

#: Folders whose conftest starts servers for all of their files.
TOGETHER: Final = (
    "tests/api_suite",
    "tests/conformance",
    "tests/hostile",
    "tests/integration",
    "tests/seeds",
    "tests/volcano_e2e",
)
#: Units that take about half a minute or more, the longest first.
LONGEST: Final = (
    "tests/integration",
    "tests/volcano_e2e",
    "tests/dialects/test_on_the_real_cluster.py",
    "tests/hostile",
    "tests/simulation/test_canaries.py",
    "tests/tutti/up/test_up.py",
    "tests/simulation/test_simulation.py",
    "tests/conformance",
    "tests/api_suite",
    "tests/dialects/test_on_the_embedded_cluster.py",
    "tests/tutti/up/test_full_disk.py",
    "tests/bench/test_on_kubernetes.py",
    "tests/controlplane/test_control_plane.py",
    "tests/chaos/test_chaos.py",
    "tests/services/admission_webhook/test_process.py",
    "tests/tutti/up/test_keys.py",
    "tests/tutti/up/test_hangs.py",
    "tests/tutti/up/test_up_embedded.py",
    "tests/tutti/up/test_launchers.py",
    "tests/test_tidy.py",
)


def unit_of(nodeid: str) -> str:
    """What a test is part of."""
    file = nodeid.partition("::")[0]
    for folder in TOGETHER:
        if file.startswith(f"{folder}/"):
            return folder
    return file


def rank(nodeid: str) -> int:
    """Smaller for what comes earlier; all that takes less than half a minute comes last."""
    unit = unit_of(nodeid)
    return LONGEST.index(unit) if unit in LONGEST else len(LONGEST)


class Spread(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Gives units out in the order in which tests were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Replace ``--dist loadfile``; any other distribution is xdist's own."""
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return Spread(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest first where the tests are shared; one process plays them as they stand."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: rank(item.nodeid))
