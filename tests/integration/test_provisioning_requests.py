"""A queue that asks for ProvisioningRequests, on the real control plane; the test is the autoscaler
(ADR 0087).
"""

import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest

from shared.contracts import annotations
from shared.kube.resources import POD_TEMPLATES, PROVISIONING_REQUESTS, QUEUES_VOLCANO
from tests.controlplane.client import Object
from tests.controlplane.cluster import ControlPlane
from tests.integration.stage import Stage
from tests.integration.suite import RunningSuite, running_suite
from tests.support.provisioning import answer, definition, requests_in
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

CLASS: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
QUEUE: Final = "provisioned"
#: The first backoff is a minute.
NEXT_ATTEMPT_S: Final = 100.0


@pytest.fixture(scope="module")
def suite(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningSuite]:
    """`tutti up` on a cluster that serves ProvisioningRequests."""
    crds = tmp_path_factory.mktemp("crds")
    (crds / "provisioningrequests.json").write_text(json.dumps(definition()))
    control_plane.install_crds(crds)
    folder = tmp_path_factory.mktemp("suite")
    with running_suite(control_plane.admin_kubeconfig, folder, "--no-webhook") as running:
        yield running


@pytest.fixture
async def queue(stage: Stage) -> AsyncIterator[None]:
    """The queue, which asks for requests."""
    manifest = {
        "apiVersion": QUEUES_VOLCANO.api_version,
        "kind": QUEUES_VOLCANO.kind,
        "metadata": {"name": QUEUE, "annotations": {annotations.PROVISIONING_CLASS: CLASS}},
        "spec": {},
    }
    await stage.api.create(QUEUES_VOLCANO.path(), manifest)
    yield
    await stage.delete(QUEUES_VOLCANO.path(name=QUEUE))


async def gang(stage: Stage, name: str, size: int) -> None:
    await stage.group(name, size, spec={"queue": QUEUE})
    await stage.members(name, size, requests={"cpu": "3"})


async def request_of(stage: Stage, other_than: str = "") -> str:
    """Wait until the namespace has one request, other than that one: its name."""

    async def made() -> str:
        found = await requests_in(stage.api, stage.namespace)
        names = [one["metadata"]["name"] for one in found]
        assert len(names) == 1, names
        assert names != [other_than]
        return str(names[0])

    return await eventually(made, timeout_s=NEXT_ATTEMPT_S, because="a request is made")


async def all_removed(stage: Stage) -> None:
    """Wait until the namespace has neither requests nor templates."""

    async def none_left() -> bool:
        kinds = (PROVISIONING_REQUESTS, POD_TEMPLATES)
        left = [await stage.api.get(kind.path(stage.namespace)) for kind in kinds]
        return not any(one["items"] for one in left)

    await eventually(none_left, timeout_s=60.0, because="request and templates are gone")


async def condition(stage: Stage, name: str, kind: str) -> Object:
    """Wait until the gang's group has a condition of this type."""

    async def shown() -> Object:
        found = (await stage.seen_group(name))["status"].get("conditions", ())
        chosen = [one for one in found if one["type"] == kind]
        assert chosen, found
        return dict(chosen[0])

    return await eventually(shown, timeout_s=20.0, because=f"{name} has {kind}")


@pytest.mark.usefixtures("queue")
async def test_a_gang_waits_for_its_request_is_bound_whole_and_takes_it_along(
    stage: Stage,
) -> None:
    await gang(stage, "train", 2)
    request = await request_of(stage)
    await stage.waits("train", "AwaitsProvisioning")
    await stage.pods_say("train", 2, reason="AwaitsProvisioning")
    # The nodes are there before the answer: nothing is placed on them.
    await stage.nodes(2)
    await stage.stays_unbound("train")
    await answer(stage.api, stage.namespace, request, "Provisioned", "two nodes are ready")
    await stage.bound("train", 2)
    for pod in await stage.pods("train"):
        notes = pod["metadata"]["annotations"]
        for key in annotations.CONSUMES_REQUEST:
            assert notes[key] == request
        for key in annotations.REQUEST_CLASS:
            assert notes[key] == CLASS
    # An autoscaler would book its capacity for ten minutes, beside the pods.
    await all_removed(stage)
    shown = await condition(stage, "train", "Provisioned")
    assert (shown["status"], request in shown["message"]) == ("True", True)


@pytest.mark.usefixtures("queue")
async def test_the_request_of_a_gang_that_is_gone_is_deleted(stage: Stage) -> None:
    await gang(stage, "train", 2)
    await request_of(stage)
    await stage.delete(stage.group_path("train"))
    await stage.delete_pods([pod["metadata"]["name"] for pod in await stage.pods("train")])
    await all_removed(stage)


@pytest.mark.certify
@pytest.mark.usefixtures("queue")
async def test_a_failed_request_is_replaced_after_a_backoff_also_by_another_planner(
    stage: Stage,
) -> None:
    await stage.nodes(2)
    await gang(stage, "train", 2)
    first = await request_of(stage)
    await answer(stage.api, stage.namespace, first, "Failed", "no such machines in this zone")
    await stage.waits("train", "ProvisioningFailed", "no such machines in this zone")
    shown = await condition(stage, "train", "ProvisioningFailed")
    assert "no such machines in this zone" in shown["message"]
    await stage.stays_unbound("train")
    second = await request_of(stage, other_than=first)
    assert second == f"{first.removesuffix('-1')}-2"
    # Whichever process dies now, nothing is requested again.
    pids = await stage.suite.pids()
    for instance in (await stage.suite.active("gang-planner"), "controller-0"):
        os.kill(pids[instance], signal.SIGKILL)
    await stage.waits("train", "AwaitsProvisioning")
    await answer(stage.api, stage.namespace, second, "Provisioned")
    await stage.bound("train", 2)
    await all_removed(stage)


@pytest.mark.usefixtures("queue")
async def test_users_see_why_the_api_server_refuses_a_request(stage: Stage) -> None:
    quotas = f"/api/v1/namespaces/{stage.namespace}/resourcequotas"
    hard = {"count/podtemplates": "0"}
    await stage.api.create(quotas, {"metadata": {"name": "none"}, "spec": {"hard": hard}})

    async def counted() -> bool:
        found = await stage.api.get(f"{quotas}/none")
        return bool(found.get("status", {}).get("used") == hard)

    await eventually(counted, because="the quota is in effect")
    await stage.nodes(2)
    await gang(stage, "train", 2)
    await stage.waits("train", "ProvisioningFailed", "exceeded quota: none")
    shown = await condition(stage, "train", "ProvisioningFailed")
    assert (shown["status"], shown["reason"]) == ("True", "Refused")
    await stage.why("podgroup/train", "ProvisioningFailed", "exceeded quota: none")

    async def reported() -> bool:
        events = await stage.api.get(f"/api/v1/namespaces/{stage.namespace}/events")
        found = [one for one in events["items"] if one["reason"] == "ProvisioningFailed"]
        assert found
        return all("exceeded quota: none" in one["message"] for one in found)

    await eventually(reported, timeout_s=20.0, because="an Event has the reason")
