"""Pods whose gang is declared in an API that is not read here stay unbound, and say why."""

from typing import Final

import pytest

from shared.contracts import annotations
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.protocol import GroupReference
from tests.controlplane.client import Object
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import SEEN_S, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

SUITE_FLAGS: Final = ()
#: Kubernetes has dropped `spec.workloadRef` from its API.
STORED: Final = [one for one in pod_vocabulary().references.unread if one.place != "field"]


def marked(index: int, mark: GroupReference) -> Object:
    """A pod with one mark."""
    return pod_manifest(
        f"marked-{index}",
        requests={"cpu": "100m"},
        scheduler_name="tutti",
        labels={mark.key: "g"} if mark.place == "label" else None,
        annotations={mark.key: "g"} if mark.place == "annotation" else None,
    )


async def test_a_pod_with_any_known_mark_stays_unbound_and_says_which(stage: Stage) -> None:
    await stage.nodes(2)
    await stage.bare_pods(*(marked(index, mark) for index, mark in enumerate(STORED)))
    await stage.bare_pods(pod_manifest("plain", scheduler_name="tutti"))

    async def all_say_it() -> bool:
        pods = {pod["metadata"]["name"]: pod for pod in await stage.pods()}
        for index, mark in enumerate(STORED):
            pod = pods[f"marked-{index}"]
            messages = [
                one["message"]
                for one in pod["status"].get("conditions", ())
                if one["type"] == "PodScheduled" and one["status"] == "False"
            ]
            assert messages, f"{mark.title}: no condition"
            assert mark.title in messages[0], messages
            assert annotations.GROUP_NAME in messages[0], messages
        return True

    await eventually(all_say_it, timeout_s=SEEN_S, because="every mark is named")
    assert set(await stage.bound("", 1)) == {"plain"}
    for index, mark in enumerate(STORED[:4]):
        words = (mark.title, "UnsupportedGang", annotations.GROUP_NAME)
        await stage.why(f"pod/marked-{index}", *words)

    async def events_name_them() -> bool:
        events = await stage.api.get(stage.path("events"))
        messages = " ".join(one.get("message") or one.get("note", "") for one in events["items"])
        assert all(mark.title in messages for mark in STORED), messages
        return True

    await eventually(events_name_them, timeout_s=SEEN_S, because="an Event names each mark")
    assert set(await stage.placed()) == {"plain"}


async def test_a_pod_follows_the_remedy_and_is_bound(stage: Stage) -> None:
    await stage.nodes(2)
    key = "scheduling.x-k8s.io/pod-group"
    pods = [
        pod_manifest(f"mended-{index}", scheduler_name="tutti", labels={key: "train"})
        for index in range(2)
    ]
    await stage.bare_pods(*pods)
    await stage.why("pod/mended-0", key)
    assert not await stage.placed()
    await stage.group("train", 2)
    notes = {"metadata": {"annotations": {annotations.GROUP_NAME: "train"}}}
    for index in range(2):
        await stage.api.patch(stage.path(name=f"mended-{index}"), notes)
    await stage.bound("train", 2)


async def test_the_creator_of_such_a_pod_is_warned(stage: Stage) -> None:
    messages = await stage.tried({"apiVersion": "v1", "kind": "Pod", **marked(0, STORED[0])})
    assert f"Warning: tutti: not bound: {STORED[0].title}" in messages


async def test_a_misspelt_scheduler_or_priority_class_is_warned_of(
    stage: Stage,
) -> None:
    """Also where others' pods are kept from the webhook by a condition in CEL."""
    pod = {"apiVersion": "v1", "kind": "Pod", **pod_manifest("slip", scheduler_name="tuti")}
    assert 'schedulerName "tuti" is not served by Tutti (did you mean "tutti"?)' in (
        await stage.tried(pod)
    )
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "slip"},
        "spec": {
            "schedulerName": "volcanoo",
            "tasks": [{"name": "w", "replicas": 1, "template": {"spec": pod["spec"]}}],
        },
    }
    assert 'did you mean "volcano"' in await stage.tried(job)
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "slip"},
        "spec": {"minMember": 1, "priorityClassName": "system-node-critical-2"},
    }
    messages = await stage.tried(group)
    assert (
        'no PriorityClass "system-node-critical-2" (did you mean "system-node-critical"?)'
        in messages
    )
    other = {"apiVersion": "v1", "kind": "Pod", **pod_manifest("o", scheduler_name="other")}
    assert "tutti" not in await stage.tried(other)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet", "Job"])
async def test_a_misspelt_name_in_a_workloads_template_is_warned_of_at_the_workload(
    stage: Stage, kind: str
) -> None:
    def workload(name: str, **spec: str) -> Object:
        pod = {"containers": [{"name": "main", "image": "none"}], **spec}
        # Without pods: none is left to be bound, or to fail to be created, after the test.
        fields: Object = {"replicas": 0, "selector": {"matchLabels": {"app": name}}}
        group = "apps/v1"
        if kind == "Job":
            group, fields, pod = "batch/v1", {"suspend": True}, {**pod, "restartPolicy": "Never"}
        fields["template"] = {"metadata": {"labels": {"app": name}}, "spec": pod}
        return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": fields}

    messages = await stage.created(workload("slip", schedulerName="tuti"))
    assert 'schedulerName "tuti" is not served by Tutti (did you mean "tutti"?)' in messages
    messages = await stage.created(
        workload("first", schedulerName="tutti", priorityClassName="system-node-critical-2")
    )
    assert 'no PriorityClass "system-node-critical-2"' in messages
    assert "tutti" not in await stage.created(workload("fine", schedulerName="tutti"))
    assert "tutti" not in await stage.created(
        workload("other", schedulerName="other", priorityClassName="none")
    )
