"""Fixtures: one control plane with controllers, and one `tutti up`, for the live recordings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.lifecycle import control_plane as workload_control_plane
from tests.conformance.lifecycle import suite as running
from tests.conformance.live_admission import write_groups
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.fixtures import CRDS_DIR


@pytest.fixture(scope="package")
def control_plane() -> Iterator[ControlPlane]:
    """A control plane with the controllers that workloads need; a fixture named so is built for."""
    with workload_control_plane() as plane:
        plane.install_crds(CRDS_DIR)
        yield plane


@pytest.fixture(scope="package")
def scheduler_conf(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The suite runs while this is used; the file of its scheduler configuration."""
    folder = tmp_path_factory.mktemp("conformance")
    flag = f"--admission-conf={write_groups(folder)}"
    with running(control_plane, folder, flag) as (_, conf):
        yield conf
