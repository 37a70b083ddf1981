"""Rights that the other tests of the suite do not use, each used here with its account's own token
on a real API server.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from services.admission_webhook.core.named_groups import NamedGroup
from services.admission_webhook.group_lookup import GroupLookup
from services.controller.core.events import ControllerEvent
from services.controller.hypernode_controller import CONFIGURATION_KEY, HyperNodeReconciler
from services.controller.job_controller import JobReconciler
from services.controller.queue_command_policy import QueueCommandPolicy
from services.controller.reconciling.controller import Reconciler, Runtime
from services.controller.reconciling.events import Recorder
from services.controller.reconciling.writes import Writes, Written
from shared.dialects.grove import SCOPE as GROVE
from shared.dialects.kai import SCOPE as KAI
from shared.dialects.kubernetes import SCOPE as KUBERNETES
from shared.kinds.metadata import Metadata
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.listwatch import Absent, Changes, Listed, ListWatch
from shared.kube.objects import KubeObject
from shared.kube.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CRONJOBS_VOLCANO,
    DEVICE_TAINT_RULES,
    JOBS_VOLCANO,
    MPI_JOBS,
    POD_GANGS,
    PODGROUPS_KAI,
    RAY_CLUSTERS,
    SPARK_APPLICATIONS,
    TOPOLOGIES_KAI,
    Resource,
)
from shared.model.objects import GROUP_NAME_SCOPE
from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import create_pods, pod_manifest
from tests.dialects.cases import FOLDER
from tests.rights.audit import NAMESPACE, RELEASE_NAME
from tests.services.controller import operator_kinds
from tests.services.controller.core.samples import make_running
from tests.services.controller.harness import a_desk, controllers
from tests.services.controller.playing import running
from tests.services.controller.test_cronjob_controller import Clock, cron
from tests.services.controller.test_podgroups_on_kubernetes import CONSUMER, groups_of, wanting
from tests.services.controller.test_status_on_kubernetes import placed_in
from tests.support.rbac import account, as_account, service_account
from tests.support.waiting import eventually
from tutti.crds_command import crds
from tutti.manifests.crds import default_names
from tutti.nats_server import NatsServer

pytestmark = [pytest.mark.integration, pytest.mark.certify]

HYPERNODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
CONFIGMAP = f"{RELEASE_NAME}-controller"
BY_RACK = """
networkTopologyDiscovery:
  - source: label
    enabled: true
    config:
      networkTopologyTypes:
        racks:
          - nodeLabel: example.com/rack
          - nodeLabel: kubernetes.io/hostname
"""


@pytest.fixture
async def jobs(control_plane: ControlPlane) -> AsyncIterator[KubeClient]:
    """A client of the account that runs Jobs."""
    path = await as_account(control_plane.admin_kubeconfig, "controller-jobs")
    async with KubeClient(await load(str(path))) as client:
        yield client


async def test_hypernodes_are_made_counted_changed_and_deleted(
    jobs: KubeClient, api: RawClient, empty_cluster: None
) -> None:
    configmaps = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    labels = {"example.com/rack": "one"}
    await api.create("/api/v1/nodes", {"metadata": {"name": "n", "labels": labels}})
    await api.create(
        configmaps, {"metadata": {"name": CONFIGMAP}, "data": {CONFIGURATION_KEY: BY_RACK}}
    )

    async def stored() -> list[Object]:
        return list((await api.get(HYPERNODES))["items"])

    async def counted() -> bool:
        return [one.get("status", {}).get("nodeCount") for one in await stored()] == [1]

    try:
        async with running(
            jobs, lambda runtime: HyperNodeReconciler(runtime, f"{NAMESPACE}/{CONFIGMAP}")
        ):
            await eventually(counted, timeout_s=30)
            (made,) = await stored()
            path = f"{HYPERNODES}/{made['metadata']['name']}"
            await api.patch(path, {"spec": {"tier": 7}})

            async def put_right() -> bool:
                return bool((await api.get(path))["spec"] == made["spec"])

            await eventually(put_right, timeout_s=30)
            await api.delete("/api/v1/nodes/n")

            async def gone() -> bool:
                return not await stored()

            await eventually(gone, timeout_s=30)
    finally:
        await api.delete(f"{configmaps}/{CONFIGMAP}")


async def test_a_policy_with_other_content_is_replaced(jobs: KubeClient, api: RawClient) -> None:
    name = f"{RELEASE_NAME}-queue-commands"
    paths = [one.path("", name) for one in (ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS)]
    try:
        for namespaces in ((), ("operators",)):
            assert await QueueCommandPolicy(jobs, name, namespaces=namespaces).reviewed_from_ms()
        stored = [await api.get(path) for path in paths]
        assert any("operators" in str(one) for one in stored)
    finally:
        for path in paths:
            await api.delete(path)


async def test_events_of_two_replicas_are_one_event_that_counts(
    jobs: KubeClient, api: RawClient, namespace: str
) -> None:
    about = Metadata(namespace=namespace, name="job", uid="u")
    for _ in range(2):
        recorder = Recorder(Writes(jobs, per_s=100))
        task = asyncio.create_task(recorder.run(), name="recorder")
        recorder.record(JOBS_VOLCANO, about, ControllerEvent("Normal", "Reason", "message"))
        await recorder.flush()
        task.cancel()
        await asyncio.wait([task])
        assert recorder.dropped == 0
    (event,) = (await api.get(f"/api/v1/namespaces/{namespace}/events"))["items"]
    assert event["count"] == 2


async def test_the_pods_of_a_daemon_set_share_a_group(
    nats_server: NatsServer, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    labels = {"a": "b"}
    spec = pod_manifest("p")["spec"] | {"restartPolicy": "Always"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    manifest: Object = {
        "metadata": {"name": "ds"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/daemonsets"
    uid = (await api.create(path, manifest))["metadata"]["uid"]
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "ds", "uid": uid}
    pods = await create_pods(
        api, namespace, [pod_manifest("p", owner={**owner, "controller": True})]
    )
    async with (
        a_desk(nats_server.url) as desk,
        controllers(desk.url, control_plane.admin_kubeconfig, "podgroup"),
    ):
        await desk.say(wanting(namespace, f"podgroup-{uid}", pods))
        await desk.all_written(CONSUMER)
    (group,) = await groups_of(api, namespace)
    assert group["metadata"]["ownerReferences"][0]["uid"] == uid


async def test_a_gang_of_a_disruption_budget_is_compared_by_a_controller_that_starts(
    nats_server: NatsServer, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    budget = await api.create(path, {"metadata": {"name": "job"}, "spec": {"minAvailable": 3}})
    # Seen before this controller began: what is stored on the group is looked at first.
    running = make_running(placed=(), dialect="disruption_budget")
    verdict = placed_in(running, budget, first_seen_ms=1)
    async with (
        a_desk(nats_server.url) as desk,
        controllers(desk.url, control_plane.admin_kubeconfig, "status"),
    ):
        await desk.say(verdict)
        await desk.all_written()
    assert (await api.get(f"{path}/job"))["metadata"]["annotations"]


@pytest.mark.parametrize(
    "dialect", ["coscheduling", "grove", "kai", "kubernetes", "kubernetes_composite"]
)
async def test_a_controller_that_starts_looks_for_a_group_of_an_api_that_is_gone(
    dialect: str,
    nats_server: NatsServer,
    control_plane: ControlPlane,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = {"metadata": {"name": "job", "namespace": namespace, "uid": f"uid-{dialect}"}}
    verdict = placed_in(make_running(placed=(), dialect=dialect), group, first_seen_ms=1)
    async with (
        a_desk(nats_server.url) as desk,
        controllers(desk.url, control_plane.admin_kubeconfig, "status"),
    ):
        await desk.say(verdict)
        await desk.all_written()
    assert "is refused" not in caplog.text


@pytest.fixture
def further_apis(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The API server serves the kinds of KAI, Grove and the operators."""
    control_plane.install_crds(FOLDER / "crds")
    operator_kinds.install(control_plane, tmp_path)


@pytest.mark.parametrize(
    ("account_name", "resource", "spec"),
    [
        ("watcher", TOPOLOGIES_KAI, {"levels": [{"nodeLabel": "example.com/rack"}]}),
        ("watcher", POD_GANGS, {"podgroups": []}),
        ("watcher", PODGROUPS_KAI, {"minMember": 1}),
        ("watcher", DEVICE_TAINT_RULES, {"taint": {"key": "a/b", "effect": "NoSchedule"}}),
        ("controller-jobs", RAY_CLUSTERS, {}),
        ("controller-jobs", MPI_JOBS, {}),
        ("controller-jobs", SPARK_APPLICATIONS, {}),
    ],
    ids=lambda one: one.title if isinstance(one, Resource) else None,
)
async def test_kinds_that_few_clusters_serve_are_listed_and_watched(
    account_name: str,
    resource: Resource,
    spec: Object,
    further_apis: None,
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
) -> None:
    listed, changed = asyncio.Event(), asyncio.Event()

    async def take(batch: Listed[KubeObject] | Changes[KubeObject] | Absent) -> None:
        assert not isinstance(batch, Absent)
        (listed if isinstance(batch, Listed) else changed).set()

    path = resource.path(namespace if resource.namespaced else "")
    manifest = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
    kubeconfig = await as_account(control_plane.admin_kubeconfig, account_name)
    async with KubeClient(await load(str(kubeconfig))) as client:
        watching = asyncio.create_task(
            ListWatch(client, resource, KubeObject).run(take), name="list-watch"
        )
        try:
            async with asyncio.timeout(30):
                await listed.wait()
                await api.create(path, {**manifest, "metadata": {"name": "one"}})
                await changed.wait()
        finally:
            watching.cancel()
            await asyncio.wait([watching])


@pytest.mark.parametrize(
    ("dialect", "resource", "spec"),
    [("grove", POD_GANGS, {"podgroups": []}), ("kai", PODGROUPS_KAI, {"minMember": 3})],
)
async def test_a_status_is_written_where_an_api_of_others_wants_it(
    dialect: str,
    resource: Resource,
    spec: Object,
    further_apis: None,
    nats_server: NatsServer,
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
) -> None:
    manifest = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
    path = resource.path(namespace)
    group = await api.create(path, {**manifest, "metadata": {"name": "job"}})
    verdict = placed_in(make_running(placed=(), dialect=dialect), group)
    async with (
        a_desk(nats_server.url) as desk,
        controllers(desk.url, control_plane.admin_kubeconfig, "status"),
    ):
        await desk.say(verdict)
        await desk.all_written()
    written = await api.get(f"{path}/job")
    assert written["metadata"]["annotations"]
    assert written["status"]


async def test_a_job_that_changed_meanwhile_is_read_again(
    jobs: KubeClient, api: RawClient, namespace: str
) -> None:
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs"
    task = {"name": "t", "replicas": 1, "template": {"spec": pod_manifest("p")["spec"]}}
    spec: Object = {"schedulerName": "tutti", "minAvailable": 1, "tasks": [task]}

    def make_overtaken(runtime: Runtime) -> Reconciler:
        replace = runtime.writes.replace_status

        async def touch_and_replace(*args: Any, **options: Any) -> Written:
            runtime.writes.replace_status = replace  # type: ignore[method-assign]  # once is enough
            await api.patch(f"{path}/job", {"metadata": {"annotations": {"touched": "now"}}})
            return await replace(*args, **options)

        runtime.writes.replace_status = touch_and_replace  # type: ignore[method-assign]  # in between
        return JobReconciler(runtime, ("tutti",))

    async def pending() -> bool:
        found = await api.get(f"{path}/job")
        return bool(found.get("status", {}).get("state", {}).get("phase") == "Pending")

    async with running(jobs, make_overtaken):
        kind = {"apiVersion": JOBS_VOLCANO.api_version, "kind": JOBS_VOLCANO.kind}
        await api.create(path, {**kind, "metadata": {"name": "job"}, "spec": spec})
        await eventually(pending, timeout_s=30)


async def test_a_cronjob_that_changed_meanwhile_is_read_again(
    jobs: KubeClient, control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    path = f"/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/cronjobs"
    admin = KubeClient(await load(str(control_plane.admin_kubeconfig)))
    clock = Clock(admin, namespace)
    kind = {"apiVersion": CRONJOBS_VOLCANO.api_version, "kind": CRONJOBS_VOLCANO.kind}
    await api.create(path, {**kind, **cron()})

    def make_overtaken(runtime: Runtime) -> Reconciler:
        create = runtime.writes.create

        async def create_and_touch(*args: Any, **options: Any) -> Written:
            written = await create(*args, **options)
            await api.patch(f"{path}/c", {"metadata": {"annotations": {"touched": "now"}}})
            return written

        runtime.writes.create = create_and_touch  # type: ignore[method-assign]  # in between
        return clock.make(runtime)

    async with admin, running(jobs, make_overtaken):
        first = await clock.go_on(2)

        async def active() -> bool:
            status = (await api.get(f"{path}/c")).get("status", {})
            return [one["name"] for one in status.get("active", [])] == [first]

        await eventually(active, timeout_s=30)


def test_crds_are_created_and_brought_up_to_date_by_their_own_account() -> None:
    with ControlPlane() as plane:
        kubeconfig = asyncio.run(as_account(plane.admin_kubeconfig, "crds"))
        for _ in range(2):
            done = CliRunner().invoke(crds, ["install", f"--kubeconfig={kubeconfig}"])
            assert done.exit_code == 0, done.output
            assert done.output.endswith(f"{len(default_names())} CRDs are served\n")


async def test_a_right_that_is_not_in_the_table_is_denied(
    control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    """So that this proof can fail: the accounts above are no other service's."""
    rights = account("controller-status").rights
    path = await service_account(control_plane, api, "stranger", rights, namespace=namespace)
    async with RawClient(path) as stranger:
        with pytest.raises(ApiError) as refused:
            await stranger.create(f"/api/v1/namespaces/{namespace}/pods", pod_manifest("p"))
    assert refused.value.status == 403


@pytest.mark.parametrize("scope", [GROUP_NAME_SCOPE, GROVE, KAI, KUBERNETES])
async def test_the_webhook_looks_up_a_group_in_each_api(
    scope: str, control_plane: ControlPlane, namespace: str
) -> None:
    path = await as_account(control_plane.admin_kubeconfig, "admission-webhook")
    endings: list[str] = []
    async with KubeClient(await load(str(path))) as client:
        lookup = GroupLookup(lambda: client, endings.append, timeout_s=20)
        named = NamedGroup(namespace, "traim", "the pod waits", scope=scope)
        (warning,) = await lookup.warnings(named)
    assert "does not exist; the pod waits" in warning
    assert endings == ["missing"]
