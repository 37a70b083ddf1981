"""The CRDs of ``deploy/crds`` on a real API server: served, checked, defaulted and printed."""

import asyncio
import copy
import json

import pytest
from click.testing import CliRunner

from tests.controlplane.client import ApiError, Object, RawClient
from tests.controlplane.cluster import ControlPlane
from tutti.crds_command import crds

pytestmark = pytest.mark.integration

VOLCANO = "/apis/scheduling.volcano.sh/v1beta1"
JOBS = "/apis/batch.volcano.sh/v1alpha1"
HYPERNODES = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
KUBE_BATCH = ("scheduling.incubator.k8s.io/v1alpha1", "scheduling.sigs.dev/v1alpha2")


def pod_group(api_version: str, spec: Object, **other: object) -> Object:
    return {
        "apiVersion": api_version,
        "kind": "PodGroup",
        "metadata": {"name": "gang"},
        "spec": spec,
        **other,
    }


def job(spec: Object) -> Object:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": spec,
    }


async def test_a_volcano_pod_group_may_be_created_with_a_status_and_updated_with_it(
    api: RawClient, namespace: str
) -> None:
    path = f"{VOLCANO}/namespaces/{namespace}/podgroups"
    group = pod_group(
        "scheduling.volcano.sh/v1beta1",
        {"minMember": 3, "minResources": {"cpu": 3, "memory": "6Gi"}, "colour": "red"},
        status={"phase": "Inqueue", "running": 1},
    )

    created = await api.create(path, group)
    patched = await api.patch(f"{path}/gang", {"status": {"phase": "Running"}})
    with pytest.raises(ApiError) as no_subresource:
        await api.patch(f"{path}/gang/status", {"status": {"phase": "Running"}})

    assert created["status"] == {"phase": "Inqueue", "running": 1}
    assert created["spec"]["queue"] == "default"
    assert created["spec"]["minResources"] == {"cpu": 3, "memory": "6Gi"}
    assert "colour" not in created["spec"]
    assert patched["status"]["phase"] == "Running"
    assert no_subresource.value.status == 404


@pytest.mark.parametrize("api_version", KUBE_BATCH)
async def test_a_kube_batch_pod_group_keeps_unknown_fields_and_has_its_own_status(
    api: RawClient, namespace: str, api_version: str
) -> None:
    path = f"/apis/{api_version}/namespaces/{namespace}/podgroups"
    group = pod_group(
        api_version, {"minMember": 3, "minResources": {"cpu": "3"}}, status={"phase": "Running"}
    )

    created = await api.create(path, group)
    patched = await api.patch(f"{path}/gang/status", {"status": {"phase": "Pending", "running": 0}})

    assert created["spec"] == {"minMember": 3, "minResources": {"cpu": "3"}}
    assert "status" not in created
    assert patched["status"] == {"phase": "Pending", "running": 0}


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ({"minMember": -1}, "spec.minMember in body should be greater"),
        pytest.param(
            {"minMember": 2**31}, "integer with format int32 in spec.minMember", id="format"
        ),
        ({"minResources": {"cpu": "lots"}}, "spec.minResources.cpu"),
        (
            {"networkTopology": {"mode": "firm"}},
            'supported values: "hard", "soft"',
        ),
        (
            {"subGroupPolicy": [{"subGroupSize": 0}]},
            "subGroupSize in body should be greater than or equal to 1",
        ),
    ],
)
async def test_what_a_pod_groups_table_forbids_is_refused_with_field_and_rule(
    api: RawClient, namespace: str, spec: Object, rule: str
) -> None:
    group = pod_group("scheduling.volcano.sh/v1beta1", spec)

    with pytest.raises(ApiError) as refused:
        await api.create(f"{VOLCANO}/namespaces/{namespace}/podgroups", group)

    assert refused.value.status == 422
    assert rule in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ({"weight": 0}, "spec.weight in body should be greater than or equal to 1"),
        ({"weight": 65536}, "spec.weight in body should be less than or equal to 65535"),
        ({"priority": -1}, "spec.priority in body should be greater than or equal to 0"),
        ({"dequeueStrategy": "lifo"}, 'supported values: "fifo", "traverse"'),
        ({"capability": {"cpu": "1Q"}}, "spec.capability.cpu"),
    ],
)
async def test_what_a_queues_table_forbids_is_refused_with_field_and_rule(
    api: RawClient, spec: Object, rule: str
) -> None:
    queue: Object = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "refused"},
        "spec": spec,
    }

    with pytest.raises(ApiError) as refused:
        await api.create(f"{VOLCANO}/queues", queue)

    assert refused.value.status == 422
    assert rule in str(refused.value)


async def test_a_queue_has_defaults_and_its_own_status(api: RawClient, namespace: str) -> None:
    name, path = f"queue-{namespace}", f"{VOLCANO}/queues"
    queue: Object = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"capability": {"cpu": "1.5", "memory": "64Gi", "nvidia.com/gpu": 8}},
        "status": {"state": "Closed"},
    }
    try:
        created = await api.create(path, queue)
        opened = await api.patch(f"{path}/{name}/status", {"status": {"state": "Open"}})
        with pytest.raises(ApiError, match='supported values: "Open", "Closed", "Closing"'):
            await api.patch(f"{path}/{name}/status", {"status": {"state": "Ajar"}})
    finally:
        await api.delete(f"{path}/{name}")

    assert created["spec"] == {
        "capability": {"cpu": "1.5", "memory": "64Gi", "nvidia.com/gpu": 8},
        "dequeueStrategy": "traverse",
        "priority": 0,
        "weight": 1,
    }
    assert "status" not in created
    assert opened["status"] == {"state": "Open"}


TASK: Object = {
    "name": "worker",
    "replicas": 2,
    "template": {
        "metadata": {"labels": {"colour": "red"}},
        "spec": {
            "containers": [
                {"name": "main", "image": "none", "ports": [{"containerPort": 80}], "env": []}
            ],
            "tolerations": [{"operator": "Exists"}],
        },
    },
}


async def test_a_job_keeps_its_template_and_gets_queue_and_retries(
    api: RawClient, namespace: str
) -> None:
    path = f"{JOBS}/namespaces/{namespace}/jobs"
    task = copy.deepcopy(TASK)
    task["template"]["spec"]["flavour"] = "any"
    spec = {"minAvailable": 2, "tasks": [task], "policies": [{"event": "*", "action": "AbortJob"}]}

    created = await api.create(path, job(spec))
    status = {"state": {"phase": "Running"}, "running": 2}
    patched = await api.patch(f"{path}/train/status", {"status": status})
    with pytest.raises(ApiError, match="running in body should be greater"):
        await api.patch(f"{path}/train/status", {"status": {"running": -1}})

    assert created["spec"]["queue"] == "default"
    assert created["spec"]["maxRetry"] == 3
    # What a pod has no field for goes, as it would from a pod; the key of a list is filled in.
    kept = copy.deepcopy(TASK)
    kept["template"]["spec"]["containers"][0]["ports"][0]["protocol"] = "TCP"
    assert created["spec"]["tasks"] == [kept]
    assert patched["status"] == status


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ({"minAvailable": -1, "tasks": [TASK]}, "spec.minAvailable in body should be greater"),
        ({"tasks": []}, "spec.tasks in body should have at least 1 items"),
        ({"tasks": [{**TASK, "name": "a.b"}]}, "spec.tasks[0].name in body should match"),
        ({"tasks": [{**TASK, "replicas": -1}]}, "spec.tasks[0].replicas in body should be"),
        ({"tasks": [TASK], "minSuccess": 0}, "spec.minSuccess in body should be greater"),
        ({"tasks": [TASK], "queue": "Field"}, "spec.queue in body should match"),
        ({"tasks": [TASK], "policies": [{"event": "PodSucceeded"}]}, "spec.policies[0].event"),
        ({"tasks": [TASK], "volumes": [{"mountPath": "/a:b"}]}, "spec.volumes[0].mountPath"),
        (
            {"tasks": [{"template": {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}}]},
            'template.spec.containers[1]: Duplicate value: {"name":"a"}',
        ),
        (
            {"tasks": [{"template": {"spec": {}}}]},
            "spec.tasks[0].template.spec.containers: Required value",
        ),
        (
            {"tasks": [{**TASK, "partitionPolicy": {"partitionSize": 1}}]},
            "spec.tasks[0].partitionPolicy.totalPartitions: Required value",
        ),
    ],
)
async def test_what_a_jobs_table_forbids_is_refused_with_field_and_rule(
    api: RawClient, namespace: str, spec: Object, rule: str
) -> None:
    with pytest.raises(ApiError) as refused:
        await api.create(f"{JOBS}/namespaces/{namespace}/jobs", job(spec))

    assert refused.value.status == 422
    assert rule in str(refused.value)


BY_LABEL: Object = {"labelMatch": {"matchLabels": {"a": "b"}}}
BY_NAME: Object = {"type": "Node", "selector": {"exactMatch": {"name": "n"}}}


def hypernode(name: str, spec: Object) -> Object:
    api_version = "topology.volcano.sh/v1alpha1"
    return {
        "apiVersion": api_version,
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ({"members": [BY_NAME]}, "spec.tier: Required value"),
        ({"tier": -1, "members": [BY_NAME]}, "greater than or equal to 0"),
        ({"tier": 1, "members": []}, "should have at least 1 items"),
        (
            {"tier": 1, "members": [{"type": "Node", "selector": {}}]},
            "Either ExactMatch or RegexMatch or LabelMatch must be specified",
        ),
        (
            {"tier": 1, "members": [{**BY_NAME, "selector": {**BY_NAME["selector"], **BY_LABEL}}]},
            "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
        ),
    ],
)
async def test_what_a_hypernodes_table_forbids_is_refused_with_its_rule(
    api: RawClient, spec: Object, rule: str
) -> None:
    with pytest.raises(ApiError) as refused:
        await api.create(HYPERNODES, hypernode("refused", spec))

    assert refused.value.status == 422
    assert rule in str(refused.value)


async def test_a_hypernode_is_kept_and_counted_in_its_own_status(api: RawClient) -> None:
    members = [BY_NAME, {"type": "Node", "selector": BY_LABEL}]
    created = await api.create(HYPERNODES, hypernode("rack", {"tier": 1, "members": members}))
    counted = await api.patch(f"{HYPERNODES}/rack/status", {"status": {"nodeCount": 2}})
    await api.delete(f"{HYPERNODES}/rack")

    assert created["spec"] == {"tier": 1, "members": members}
    assert counted["status"] == {"nodeCount": 2}


async def test_kubectl_knows_the_short_names_and_prints_the_columns(
    control_plane: ControlPlane, api: RawClient, namespace: str
) -> None:
    group = pod_group(
        "scheduling.volcano.sh/v1beta1", {"minMember": 3}, status={"phase": "Running", "running": 2}
    )
    await api.create(f"{VOLCANO}/namespaces/{namespace}/podgroups", group)
    await api.create(f"{JOBS}/namespaces/{namespace}/jobs", job({"tasks": [TASK]}))

    def get(kind: str, *flags: str) -> list[list[str]]:
        text = control_plane.kubectl("get", kind, f"--namespace={namespace}", *flags)
        return [line.split() for line in text.splitlines()]

    groups = await asyncio.to_thread(get, "pg", "--output=wide")
    jobs = await asyncio.to_thread(get, "vcjob")
    explained = await asyncio.to_thread(
        control_plane.kubectl, "explain", "podgroup-v1beta1.spec.minTaskMember"
    )

    volcanos = ["NAME", "STATUS", "MINMEMBER", "RUNNINGS", "AGE", "QUEUE"]
    assert groups[0] == [*volcanos, "MEMBERS", "REASON"]
    assert groups[1][:4] == ["gang", "Running", "3", "2"]
    assert groups[1][5] == "default"
    assert jobs[0] == ["NAME", "STATUS", "MINAVAILABLE", "RUNNINGS", "AGE"]
    assert jobs[1][0] == "train"
    assert "minTaskMember <map[string]integer>" in explained


def test_kubectl_finds_the_queues_and_pod_groups_of_today() -> None:
    """Of several groups with one plural kubectl takes the first in the alphabet: kube-batch's."""
    with ControlPlane() as plane:
        flag = f"--kubeconfig={plane.admin_kubeconfig}"
        done = CliRunner().invoke(crds, ["install", flag])
        assert done.exit_code == 0, done.output
        group = pod_group(
            "scheduling.volcano.sh/v1beta1",
            {"minMember": 3, "queue": "research"},
            status={
                "phase": "Inqueue",
                "members": 4,
                "conditions": [{"type": "Unschedulable", "reason": "NotEnoughResources"}],
            },
        )
        plane.kubectl("create", "-f", "-", stdin=json.dumps(group))
        for word in ("podgroups", "podgroup", "pg"):
            head, row = plane.kubectl("get", word).splitlines()
            assert head.split() == [
                *("NAME", "STATUS", "MINMEMBER", "RUNNINGS", "AGE"),
                *("QUEUE", "MEMBERS", "REASON"),
            ]
            first, *_, queue, members, reason = row.split()
            assert (first, queue, members, reason) == (
                "gang",
                "research",
                "4",
                "NotEnoughResources",
            )
        assert plane.kubectl("get", "queue", "-o", "name") == ""

        done = CliRunner().invoke(crds, ["install", "--kube-batch", flag])
        assert done.exit_code == 0, done.output
        # Then only short names, and names with their group, find them.
        plane.kubectl("api-resources", "--cached=false")
        assert plane.kubectl("get", "pg", "-o", "name") == "podgroup.scheduling.volcano.sh/gang\n"
        assert plane.kubectl("get", "podgroups", "-o", "name") == ""
