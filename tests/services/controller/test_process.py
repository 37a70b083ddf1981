"""The controllers as one process, with exactly the rights that they say they need."""

from pathlib import Path

import pytest

from shared.contracts import annotations, subjects
from shared.contracts.verdicts import PodRef
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import create_pods, pod_manifest
from tests.services.controller.core.samples import make_running, make_waiting
from tests.services.controller.harness import a_desk
from tests.services.controller.test_podgroups_on_kubernetes import group_names, wanting
from tests.services.controller.test_status_on_kubernetes import (
    GROUPS,
    events_of,
    make_group,
    path_of,
    placed_in,
)
from tests.support.rbac import grant
from tests.support.service_process import a_service
from tutti.nats_server import NatsServer
from tutti.rights.table import CONTROLLERS

pytestmark = pytest.mark.integration


async def test_both_controllers_work_with_their_own_rights_and_stop_when_asked(
    nats_server: NatsServer,
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    tmp_path: Path,
) -> None:
    await grant(api, "test-controller", (*CONTROLLERS["status"], *CONTROLLERS["podgroup"]))
    kubeconfig = control_plane.kubeconfig_for("test-controller")
    groups = {dialect: await make_group(api, namespace, dialect) for dialect in GROUPS}
    pods = await create_pods(api, namespace, [pod_manifest(f"w-{n}") for n in range(2)])
    refs = tuple(PodRef(uid=pod["metadata"]["uid"], name=pod["metadata"]["name"]) for pod in pods)
    async with (
        a_desk(nats_server.url) as desk,
        a_service(
            "controller",
            desk.bus,
            nats_server.url,
            tmp_path / "controller.log",
            f"--kubeconfig={kubeconfig}",
            "--controllers=status,podgroup",
        ),
    ):
        for dialect, group in groups.items():
            await desk.say(placed_in(make_running(placed=(), dialect=dialect), group))
        await desk.say(placed_in(make_waiting(waiting=refs, dialect="volcano"), groups["volcano"]))
        await desk.say(wanting(namespace, "podgroup-x", pods))
        await desk.all_written()
        await desk.all_written(subjects.PODGROUP_CONSUMER)
    for dialect in ("incubator", "sigs"):
        found = await api.get(path_of(namespace, dialect))
        assert found["status"]["phase"] == "Running"
        assert annotations.VERDICT in found["metadata"]["annotations"]
        assert await events_of(api, namespace, groups[dialect]["metadata"]["uid"])
    assert (await api.get(path_of(namespace)))["status"]["phase"] == "Inqueue"
    assert await group_names(api, namespace) == {"w-0": "podgroup-x", "w-1": "podgroup-x"}
    pod = await api.get(f"/api/v1/namespaces/{namespace}/pods/w-0")
    assert pod["status"]["conditions"][0]["reason"] == "NotEnoughResources"
