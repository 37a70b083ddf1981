"""Volcano's recorded life cycles on a real control plane with the suite and kubelets."""

from pathlib import Path

import pytest

from tests.conformance.explained import unexplained
from tests.conformance.lifecycle import Outcome, selected, stand
from tests.controlplane.cluster import ControlPlane

pytestmark = pytest.mark.integration

#: Plays in every run, all at once: a gang's whole life, the groups of workloads, a policy, a
#: plugin, a command, a flow.
FIXED = (
    r"^(gang/gang-starts-and-completes|workloads/(bare-pod-annotations|deployment|kubernetes-job)"
    r"|policies/policy-failed-restartjob|job/suspend-and-resume|plugins/plugin-svc"
    r"|jobflow/flow-three-steps)$"
)


async def played(
    plane: ControlPlane, conf: Path, only: str, *, at_once: int
) -> dict[str, list[str]]:
    """Unexplained differences of the cases that have any."""
    async with stand(plane, conf) as here:
        outcomes: list[Outcome] = [one async for one in here.play(selected(only), at_once=at_once)]
    assert outcomes
    found = {key: unexplained(key, different) for key, different in outcomes}
    return {
        key: [f"{one.where} -> {one.what}" for one in different]
        for key, different in found.items()
        if different
    }


@pytest.mark.timeout(240)
async def test_a_part_of_each_themes_cases_ends_as_in_volcano(
    control_plane: ControlPlane, scheduler_conf: Path
) -> None:
    assert await played(control_plane, scheduler_conf, FIXED, at_once=8) == {}


@pytest.mark.certify
@pytest.mark.timeout(7200)
async def test_every_recorded_life_cycle_ends_as_in_volcano(
    control_plane: ControlPlane, scheduler_conf: Path
) -> None:
    different = await played(control_plane, scheduler_conf, "", at_once=4)
    assert different == {}
