"""Objects of one namespace that are as large as the API server stores them: another namespace's
gang is bound at once, no service ends, and each object is named with its field and rule.
"""

import uuid
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
import pytest

from shared.contracts import annotations
from tests.controlplane.client import Object
from tests.controlplane.nodes import create_namespace, delete_pods, pod_manifest
from tests.integration.stage import VOLCANO, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

#: What the issue was reported with; the API server takes more than a megabyte.
BYTES: Final = 975_000
#: A gang of another namespace is bound in this time, whatever the watcher reads besides.
BOUND_S: Final = 20.0
#: Longest label values, each another one.
VALUES: Final = [f"{number:06}{'v' * 57}" for number in range(BYTES // 66)]
SELECTOR: Final = {"matchExpressions": [{"key": "app", "operator": "In", "values": VALUES}]}
TOO_MANY_VALUES: Final = f"TooLarge: spec.selector has {len(VALUES) + 1} entries"
RESOURCES: Final = {f"e.example/r{number}": "1" for number in range(5_000)}
QUOTA: Final = {f"count/k{number}.example": "9" for number in range(20_000)}


@pytest.fixture
async def evil(stage: Stage) -> AsyncIterator[str]:
    """The namespace with these objects; gone afterwards."""
    name = f"evil-{uuid.uuid4().hex[:8]}"
    await create_namespace(stage.api, name)
    yield name
    await stage.api.delete(f"/apis/{VOLCANO}/namespaces/{name}/podgroups")
    await delete_pods(stage.api, name)
    await stage.api.delete(f"/api/v1/namespaces/{name}")


def budget() -> Object:
    return {"spec": {"maxUnavailable": 1, "selector": SELECTOR}}


def claim() -> Object:
    asked = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": asked, "selector": SELECTOR}
    return {"spec": {**spec, "storageClassName": ""}}


def device_claim() -> Object:
    tolerations = [{"key": f"k{number}", "operator": "Exists"} for number in range(16)]
    exactly = {"deviceClassName": "any", "tolerations": tolerations}
    requests = [{"name": f"r{number}", "exactly": exactly} for number in range(32)]
    return {"spec": {"devices": {"requests": requests}}}


def workload() -> Object:
    """A Job that makes no pods, with the largest template."""
    env = [{"name": f"E{number}", "value": "v" * 90} for number in range(8_000)]
    container = {"name": "main", "image": "registry.example/none", "env": env}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {"spec": {"suspend": True, "template": {"spec": spec}}}


#: Collection and API version -> what evil creates there.
OBJECTS: Final[dict[tuple[str, str, str], Object]] = {
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"): budget(),
    ("v1", "PersistentVolumeClaim", "persistentvolumeclaims"): claim(),
    ("v1", "ResourceQuota", "resourcequotas"): {"spec": {"hard": QUOTA}},
    ("resource.k8s.io/v1", "ResourceClaim", "resourceclaims"): device_claim(),
    ("batch/v1", "Job", "jobs"): workload(),
    (VOLCANO, "PodGroup", "podgroups"): {
        "spec": {"minMember": 2, "minTaskMember": {f"role-{one}": 1 for one in range(30_000)}}
    },
}


async def create_all(stage: Stage, evil: str) -> None:
    for (version, kind, plural), body in OBJECTS.items():
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        manifest = {"apiVersion": version, "kind": kind, "metadata": {"name": "huge"}, **body}
        await stage.api.create(f"{root}/namespaces/{evil}/{plural}", manifest)


async def create_pods(stage: Stage, evil: str) -> None:
    group = {"metadata": {"name": "resources"}, "spec": {"minMember": 1}}
    manifest = {"apiVersion": VOLCANO, "kind": "PodGroup", **group}
    await stage.api.create(f"/apis/{VOLCANO}/namespaces/{evil}/podgroups", manifest)
    named = {annotations.GROUP_NAME: "resources"}
    huge = pod_manifest("resources", requests=RESOURCES, annotations=named)
    huge["spec"]["containers"][0]["resources"]["limits"] = RESOURCES
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "huge"}}
    path = f"/api/v1/namespaces/{evil}/pods"
    await stage.api.create(path, huge)
    await stage.api.create(path, pod_manifest("claims", spec={"volumes": [volume]}))


async def waits_for(stage: Stage, evil: str, name: str, words: str) -> None:
    """Wait until a pod's own condition says so."""

    async def reported() -> bool:
        found = await stage.api.get(f"/api/v1/namespaces/{evil}/pods/{name}")
        conditions: list[Any] = found["status"].get("conditions", [])
        texts = [one.get("message", "") for one in conditions if one["type"] == "PodScheduled"]
        assert any(words in text for text in texts), texts
        return True

    await eventually(reported, timeout_s=20.0, because=f"{name} waits: {words}")


async def too_large(stage: Stage) -> dict[str, float]:
    """The watcher's numbers of objects that it does not judge, by kind."""
    found: dict[str, float] = {}
    for series in await stage.suite.series("watcher"):
        for name, value in series.items():
            before, _, kind = name.rpartition('too_large_objects{kind="')
            if value and before.endswith("_"):
                found[kind.partition('"')[0]] = value
    return found


async def test_the_largest_objects_of_one_namespace_stop_no_other_and_are_named(
    stage: Stage, evil: str
) -> None:
    assert len(msgspec.json.encode(budget())) > BYTES - 1024
    before = await stage.suite.pids()
    await stage.nodes(2)
    await create_all(stage, evil)
    await create_pods(stage, evil)
    await stage.gang("prod", 3)
    await stage.bound("prod", 3, timeout_s=BOUND_S)

    most = "and Tutti judges at most"
    words = f"TooLarge: spec.containers.resources.requests has 5001 resources, {most} 256"
    await waits_for(stage, evil, "resources", words)
    await waits_for(stage, evil, "claims", f'persistentvolumeclaim "huge": {TOO_MANY_VALUES}')

    async def group_says() -> bool:
        found = await stage.api.get(f"/apis/{VOLCANO}/namespaces/{evil}/podgroups/huge")
        messages = [one["message"] for one in found.get("status", {}).get("conditions", ())]
        assert any("spec.minTaskMember: 30000 roles" in one for one in messages), messages
        return True

    await eventually(group_says, timeout_s=20.0, because="the group names its field")
    counted = {"budget": 1.0, "claim": 1.0, "resourcequota": 1.0, "pod": 1.0}

    async def all_counted() -> bool:
        assert await too_large(stage) == counted
        return True

    await eventually(all_counted, because="each kind that is judged by its size has been seen")
    assert TOO_MANY_VALUES in await stage.suite.why("pod/claims", evil)
    assert await stage.suite.pids() == before
    # A watcher and a planner that begin again read all of it.
    await stage.suite.kill(await stage.suite.active("watcher"))
    await stage.suite.kill(await stage.suite.active("gang-planner"))
    await stage.gang("again", 3)
    await stage.bound("again", 3, timeout_s=30.0)
    after = await stage.suite.pids()
    restarted = {name for name in before if before[name] != after[name]}
    assert {name.rpartition("-")[0] for name in restarted} == {"watcher", "gang-planner"}
    assert len(restarted) == 2
