"""What `tutti explain-dialect` says about manifests, and what a cluster makes of them."""

from typing import Final

import pytest

from shared.contracts.visibility import ExplanationStatus
from shared.dialects.discovery import scheduler_names
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.explanation.understanding import understand
from tests.controlplane.client import Object
from tests.controlplane.nodes import pod_manifest
from tests.integration.stage import VOLCANO, Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(120)]

SUITE_FLAGS: Final = ()
GROUP: Final = "scheduling.k8s.io/group-name"
#: A label that names a gang of an API that no dialect reads.
UNREAD: Final = next(
    one for one in pod_vocabulary().references.unread if one.place == "label" and one.names_group
)


def explained(namespace: str, *manifests: Object) -> ExplanationStatus:
    placed = [(str(at), manifest) for at, manifest in enumerate(manifests)]
    return understand(placed, namespace=namespace, scheduler_names=scheduler_names())


def a_group(name: str, minimum: int) -> Object:
    return {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum},
    }


async def test_a_gang_that_is_explained_as_complete_is_bound(stage: Stage) -> None:
    group = a_group("whole", 2)
    pods = [pod_manifest(f"whole-{at}", annotations={GROUP: "whole"}) for at in range(2)]
    (gang,) = explained(stage.namespace, group, *pods).gangs
    assert (gang.scheduled, gang.missing, gang.minimum, gang.members) == (True, (), 2, 2)
    await stage.nodes(1)
    await stage.api.create(stage.group_path("").rstrip("/"), group)
    await stage.bare_pods(*pods)
    await stage.bound("whole", 2)


async def test_a_pod_that_is_explained_as_not_bound_says_the_same_in_the_cluster(
    stage: Stage,
) -> None:
    # No PodGroup is created for pods of this scheduler, which would be a second gang.
    labels = {UNREAD.key: "other"}
    pod = pod_manifest("unread", scheduler_name="kube-batch", labels=labels)
    (found,) = explained(stage.namespace, pod).objects
    (missing,) = found.missing
    sentence = missing.removeprefix("not bound: ")
    assert sentence != missing
    await stage.nodes(1)
    await stage.bare_pods(pod)

    async def is_said() -> bool:
        (stored,) = await stage.pods()
        conditions = stored["status"].get("conditions", ())
        messages = [one["message"] for one in conditions if one["type"] == "PodScheduled"]
        assert messages, stored["status"]
        assert sentence in messages[0]
        return True

    await eventually(is_said, timeout_s=20, because="the condition has the sentence")
    assert not await stage.placed()


async def test_the_namespaces_label_is_explained_as_it_works(stage: Stage) -> None:
    pod = pod_manifest("p", scheduler_name="default-scheduler", annotations={GROUP: "g"})
    labels = {"tutti.dev/schedule": "true"}
    metadata = {"name": stage.namespace, "labels": labels}
    opted_in = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}

    async def scheduler() -> str:
        tried = await stage.api.request("POST", stage.path(), pod, params={"dryRun": "All"})
        return str(tried["spec"]["schedulerName"])

    assert not explained(stage.namespace, pod).objects[0].scheduling[0].taken
    assert await scheduler() == "default-scheduler"
    assert explained(stage.namespace, opted_in, pod).objects[1].scheduling[0].taken
    path = f"/api/v1/namespaces/{stage.namespace}"
    await stage.api.patch(path, {"metadata": {"labels": labels}})

    async def is_taken() -> bool:
        return await scheduler() == "tutti"

    await eventually(is_taken, timeout_s=20, because="the API server has read the label")
