"""What a release does to pods: on the embedded API server and on a real kube-apiserver."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from services.binder.api import KubePods
from shared.contracts.decisions import EvictionDecision, Victim
from shared.contracts.outcomes import Outcome
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import (
    bind_pod,
    create_namespace,
    create_pods,
    pod_manifest,
    remove_namespace,
)
from tests.services.binder.core.samples import make_release
from tests.services.binder.harness import a_binder, a_desk
from tests.support.rbac import as_account
from tests.support.waiting import eventually
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
POLICY_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"

CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "GangReleased",
    "message": "m",
    "lastTransitionTime": "2026-11-21T00:00:00Z",
}


class Cluster:
    """An API server, and what the tests look at in it."""

    def __init__(self, kubeconfig: Path, api: RawClient, namespace: str) -> None:
        self.kubeconfig = kubeconfig
        self.api = api
        self.namespace = namespace

    def path(self, name: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{name}"

    async def running(self, count: int, **spec: object) -> list[Object]:
        """Make pods w-0, w-1, … and bind them to a node; the API server asks for none."""
        manifests = [pod_manifest(f"w-{index}", spec=spec) for index in range(count)]
        pods = await create_pods(self.api, self.namespace, manifests)
        for pod in pods:
            await bind_pod(self.api, pod, "node-0")
        return pods

    async def find(self, name: str) -> Object | None:
        try:
            return await self.api.get(self.path(name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def succeed(self, pod: Object) -> None:
        """Its kubelet says that it has ended well."""
        path = self.path(pod["metadata"]["name"])
        await self.api.patch(f"{path}/status", {"status": {"phase": "Succeeded"}})

    async def remove_at_once(self, name: str) -> None:
        await self.api.delete(self.path(name), {"gracePeriodSeconds": 0})


@pytest.fixture(params=["embedded", "real"])
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    """Each of the two API servers, without kubelets: what is being deleted stays visible."""
    if request.param == "real":
        control_plane: ControlPlane = request.getfixturevalue("control_plane")
        async with _real(control_plane) as made:
            yield made
        return
    async with EmbeddedCluster(Settings(nodes=0)) as embedded:
        kubeconfig = embedded.kubeconfig(tmp_path / "kubeconfig")
        async with RawClient(kubeconfig) as api:
            await create_namespace(api, "releases")
            yield Cluster(kubeconfig, api, "releases")


@asynccontextmanager
async def _real(control_plane: ControlPlane) -> AsyncIterator[Cluster]:
    name = f"releases-{uuid.uuid4().hex[:10]}"
    async with RawClient(control_plane.admin_kubeconfig) as api:
        await create_namespace(api, name)
        yield Cluster(await as_account(control_plane.admin_kubeconfig, "binder"), api, name)
        await remove_namespace(api, name)


def release_of(pods: list[Object]) -> EvictionDecision:
    victims = tuple(
        Victim(
            uid=pod["metadata"]["uid"],
            namespace=pod["metadata"]["namespace"],
            name=pod["metadata"]["name"],
        )
        for pod in pods
    )
    return msgspec.structs.replace(make_release(0), victims=victims)


async def released(
    nats: NatsServer, cluster: Cluster, *decisions: EvictionDecision
) -> list[Outcome]:
    """Have a binder carry the decisions out, one after the other."""
    outcomes: list[Outcome] = []
    async with (
        a_desk(nats.url) as desk,
        KubeClient(await load(str(cluster.kubeconfig))) as client,
        a_binder(nats.url, KubePods(client, timeout_s=5.0, on_health=lambda _: None)),
    ):
        for decision in decisions:
            seq = await desk.decide(decision)

            async def outcome(seq: int = seq) -> Outcome | None:
                return await desk.outcome(seq)

            found = await eventually(outcome)
            assert found is not None
            outcomes.append(found)
    return outcomes


async def test_released_pods_say_why_and_are_deleted_within_their_own_grace(
    nats_server: NatsServer, cluster: Cluster
) -> None:
    pods = await cluster.running(3, terminationGracePeriodSeconds=17)
    first, again = await released(nats_server, cluster, release_of(pods), release_of(pods))
    assert (first.evicted, first.members, first.reason, first.notes) == (3, (), "", ())
    assert again.evicted == 3, "what is going is as good as gone"
    for pod in pods:
        found = await cluster.find(pod["metadata"]["name"])
        assert found is not None
        assert found["metadata"]["deletionGracePeriodSeconds"] == 17
        conditions = {one["type"]: one for one in found["status"]["conditions"]}
        assert conditions["PodScheduled"]["status"] == "True", "other conditions stay"
        target = conditions["DisruptionTarget"]
        assert (target["status"], target["reason"]) == ("True", "GangReleased")
        assert "policy says no" in target["message"]


async def test_a_pod_made_again_under_the_name_survives_untouched(
    nats_server: NatsServer, cluster: Cluster
) -> None:
    pods = await cluster.running(2)
    await cluster.remove_at_once("w-0")
    await cluster.remove_at_once("w-1")
    (stranger,) = await create_pods(cluster.api, cluster.namespace, [pod_manifest("w-0")])
    (outcome,) = await released(nats_server, cluster, release_of(pods))
    assert (outcome.evicted, outcome.members, outcome.notes) == (2, (), ())
    found = await cluster.find("w-0")
    assert found is not None
    assert found["metadata"]["resourceVersion"] == stranger["metadata"]["resourceVersion"]


async def test_no_request_touches_a_pod_of_another_uid(cluster: Cluster) -> None:
    """However late it arrives: between a mark and its DELETE the pod may have been made again."""
    (pod,) = await cluster.running(1)
    victim = msgspec.structs.replace(release_of([pod]).victims[0], uid=str(uuid.uuid4()))
    before = await cluster.find("w-0")
    async with KubeClient(await load(str(cluster.kubeconfig))) as client:
        binder = KubePods(client, timeout_s=5.0, on_health=lambda _: None)
        marked = await binder.mark(victim, CONDITION)
        deleted = await binder.delete(victim)
    assert (marked.status, deleted.status) == (422, 409)
    assert await cluster.find("w-0") == before


async def test_a_victim_that_has_succeeded_meanwhile_is_left(
    nats_server: NatsServer, cluster: Cluster
) -> None:
    pods = await cluster.running(2)
    await cluster.succeed(pods[0])
    (outcome,) = await released(nats_server, cluster, release_of(pods))
    assert (outcome.evicted, outcome.members, outcome.notes) == (2, (), ())
    kept, other = await cluster.find("w-0"), await cluster.find("w-1")
    assert kept is not None
    assert "deletionTimestamp" not in kept["metadata"]
    assert other is None or "deletionTimestamp" in other["metadata"]


async def test_marking_again_writes_nothing(cluster: Cluster) -> None:
    """A redelivery must not wake every watcher of the pods again."""
    (pod,) = await cluster.running(1)
    victim = release_of([pod]).victims[0]
    versions: list[str] = []
    async with KubeClient(await load(str(cluster.kubeconfig))) as client:
        binder = KubePods(client, timeout_s=5.0, on_health=lambda _: None)
        for _ in range(2):
            assert (await binder.mark(victim, CONDITION)).status == 200
            found = await cluster.find("w-0")
            assert found is not None
            versions.append(found["metadata"]["resourceVersion"])
    assert versions[0] == versions[1]


async def test_a_delete_that_a_policy_refuses_is_reported_in_its_words(
    nats_server: NatsServer, control_plane: ControlPlane
) -> None:
    async with _real(control_plane) as cluster:
        pods = await cluster.running(3)
        async with _no_deletion_of(cluster, "w-1"):
            (outcome,) = await released(nats_server, cluster, release_of(pods))
        kept = await cluster.find("w-1")
    assert (outcome.evicted, outcome.reason) == (2, "")
    (member,) = outcome.members
    assert (member.uid, member.result) == (pods[1]["metadata"]["uid"], "refused")
    assert "w-1 is sacred" in member.message
    assert kept is not None
    assert "deletionTimestamp" not in kept["metadata"]


@asynccontextmanager
async def _no_deletion_of(cluster: Cluster, name: str) -> AsyncIterator[None]:
    """Have a ValidatingAdmissionPolicy refuse to delete the pod, from when it is in force."""
    api = cluster.api
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    policy: Object = {
        "metadata": {"name": "sacred"},
        "spec": {
            "matchConstraints": {"resourceRules": [{**pods, "operations": ["DELETE"]}]},
            "validations": [
                {
                    "expression": f"oldObject.metadata.name != '{name}'",
                    "message": f"{name} is sacred",
                }
            ],
        },
    }
    binding: Object = {
        "metadata": {"name": "sacred"},
        "spec": {"policyName": "sacred", "validationActions": ["Deny"]},
    }
    await api.create(POLICIES, policy)
    await api.create(POLICY_BINDINGS, binding)

    async def in_force() -> bool:
        try:
            await api.delete(cluster.path(name), {"dryRun": ["All"]})
        except ApiError as error:
            return error.status == 422
        return False

    try:
        await eventually(in_force)
        yield
    finally:
        await api.delete(f"{POLICY_BINDINGS}/sacred")
        await api.delete(f"{POLICIES}/sacred")

        async def gone() -> bool:
            try:
                await api.delete(cluster.path(name), {"dryRun": ["All"]})
            except ApiError as error:
                return error.status == 404
            return True

        await eventually(gone)
