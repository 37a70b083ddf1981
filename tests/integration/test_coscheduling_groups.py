"""Gangs of the scheduler plugin coscheduling whose CRD arrives while the services run.

The API's features are in tests/dialects.
"""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.controlplane.client import Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import WORKLOAD_CONTROLLERS, ControlPlaneOptions
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

VERSION: Final = "scheduling.x-k8s.io/v1alpha1"
LABEL: Final = "scheduling.x-k8s.io/pod-group"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OPEN: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CRD: Final[Object] = {
    "metadata": {"name": "podgroups.scheduling.x-k8s.io"},
    "spec": {
        "group": "scheduling.x-k8s.io",
        "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": OPEN, "status": OPEN},
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One of the module's own, to which a test adds the CRD."""
    with ControlPlane(ControlPlaneOptions(controllers=WORKLOAD_CONTROLLERS)) as running:
        running.install_crds(CRDS_DIR)
        yield running


async def make_crd(api: RawClient) -> None:
    await api.create(CRDS, CRD)

    async def established() -> bool:
        found = await api.get(f"{CRDS}/{CRD['metadata']['name']}")
        conditions = found.get("status", {}).get("conditions") or ()
        return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)

    await eventually(established, because="the CRD is established")


async def make_group(stage: Stage, name: str, least: int, **spec: Any) -> None:
    manifest = {
        "apiVersion": VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": least, **spec},
    }
    await stage.api.create(stage.group_path("", VERSION), manifest)


async def make_pods(stage: Stage, group: str, *indices: int) -> None:
    await stage.bare_pods(
        *(
            pod_manifest(
                f"{group}-{index}",
                requests={"cpu": "4"},
                scheduler_name="tutti",
                labels={LABEL: group},
            )
            for index in indices
        )
    )


async def reports(stage: Stage, name: str, phase: str, **counts: int) -> Object:
    """Wait until the group's status has this phase and these counters."""

    async def reported() -> Object:
        status: Object = (await stage.seen_group(name, VERSION)).get("status", {})
        assert status.get("phase") == phase, status
        assert {key: status.get(key, 0) for key in counts} == counts, status
        return status

    return await eventually(reported, timeout_s=SEEN_S, because=f"{name} is {phase}")


async def all_placed(stage: Stage, count: int) -> None:
    async def placed() -> bool:
        found = await stage.placed()
        assert len(found) == count, found
        return True

    await eventually(placed, timeout_s=SEEN_S, because=f"{count} are bound")


async def test_gangs_are_read_as_soon_as_the_crd_is_there_and_get_its_phases(stage: Stage) -> None:
    await stage.nodes(3)
    await make_pods(stage, "train", 0, 1)
    await stage.pods_say("", 2, words="install the CRD of scheduling.x-k8s.io")

    async def each_has_a_group() -> bool:
        return len((await stage.api.get(stage.group_path("")))["items"]) == 2

    await eventually(each_has_a_group, because="Tutti makes groups for pods without a group")
    await make_crd(stage.api)
    await make_group(stage, "train", 3, scheduleTimeoutSeconds=20, minResources={"cpu": "12"})
    await reports(stage, "train", "Pending")
    assert not await stage.placed()
    await make_pods(stage, "train", 2)
    await all_placed(stage, 3)
    status = await reports(stage, "train", "Running", running=3)
    assert status["scheduleStartTime"]
    assert LABEL not in await stage.why("pod/train-2", "train")

    async def none_is_left() -> bool:
        made = (await stage.api.get(stage.group_path("")))["items"]
        assert not made, [one["metadata"]["name"] for one in made]
        return True

    await eventually(none_is_left, timeout_s=SEEN_S, because="the pods' own group counts")
