"""In every gang API: a group that has ended keeps its status when its pods are cleaned up, also by
a planner that starts without any storage, and its new pods are placed as a gang.
"""

from typing import Any, Final

import msgspec
import pytest

from services.controller.core.statuses.annotation import annotation_of
from shared.contracts.annotations import VERDICT
from shared.contracts.verdicts import Verdict
from shared.dialects.discovery import dialect, dialects
from shared.dialects.protocol import Kind
from shared.kube.resources import COMPOSITE_PODGROUPS, PODGROUPS_KUBERNETES
from shared.model.objects import Owner, Pod, PodGroup
from tests.services.gang_planner.core.lifecycle.gang_lives import FULL, cluster
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_pods
from tests.shared.dialects.reading import CONTEXT, controlled_by, decoded, metadata

_GANG_OF_TWO: Final = {"schedulingPolicy": {"gang": {"minCount": 2}}}
#: Dialect -> the spec of a group of two pods.
SPECS: Final[dict[str, dict[str, Any]]] = {
    "coscheduling": {"minMember": 2},
    "disruption_budget": {"minAvailable": 2},
    "grove": {
        "podgroups": [
            {
                "name": "w",
                "minReplicas": 2,
                "podReferences": [{"name": f"one-worker-{i}"} for i in range(2)],
            }
        ]
    },
    "incubator": {"minMember": 2},
    "kai": {"minMember": 2},
    "kubernetes": _GANG_OF_TWO,
    "sigs": {"minMember": 2},
    "volcano": {"minMember": 2},
}
#: The phase of an ended group, where the API has phases.
LAST_PHASES: Final = {
    "coscheduling": ("Finished", "Failed"),
    "grove": ("Running", "Starting"),
    # kube-batch knows no phase of ended groups.
    "incubator": ("Running", "Running"),
    "kai": ("Successful", "Failed"),
    "sigs": ("Running", "Running"),
    "volcano": ("Completed", "Completed"),
}
every_api: Final = pytest.mark.parametrize("name", SPECS)


class Stored:
    """A group on the API server, as the controller writes it and the watcher reads it."""

    def __init__(self, kind: Kind, manifest: dict[str, Any], name: str) -> None:
        self.kind = kind
        self.manifest = manifest
        self.dialect = dialect(name)

    def read(self) -> PodGroup:
        group = self.kind.neutral_object(decoded(self.kind.decoded, self.manifest), CONTEXT)
        assert isinstance(group, PodGroup)
        return group

    def write(self, verdict: Verdict) -> dict[str, Any]:
        """Write the status and the verdict; return the status."""
        patch = self.dialect.status(verdict)
        assert patch is not None
        found = self.manifest["metadata"]
        found["resourceVersion"] = str(int(found["resourceVersion"]) + 1)
        found["annotations"] = {VERDICT: annotation_of(verdict)}
        written = {k: v for k, v in patch.body.get("status", {}).items() if v is not None}
        if self.kind.status is not None and self.kind.status.at == "status":
            self.manifest["status"] = written
        elif written:
            self.manifest["status"] = {**self.manifest.get("status", {}), **written}
        return written


def stored(name: str) -> Stored:
    kind = next(kind for kind in dialect(name).kinds if kind.neutral == "podgroup")
    owned: dict[str, Any] = {}
    if kind.claims_by_owner:
        owned = {"ownerReferences": controlled_by()}
    return Stored(kind, {"metadata": metadata(**owned), "spec": SPECS[name]}, name)


def pods_of(group: PodGroup, count: int = 2, **fields: Any) -> list[Pod]:
    owner = Owner(api_version="kubeflow.org/v1", kind="TFJob", name="job", uid="uid-job")
    named = "" if group.by_owner else group.name
    found = {"owner": owner, "group_name": named, "group_scope": group.scope, **fields}
    return make_pods("one", count, FULL, **found)


def finished(scene: LoggedScene, group: PodGroup, pods: list[Pod], phase: str) -> Verdict:
    """The pods run and end."""
    scene.put(group, *pods)
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    for pod in pods:
        scene.change(pod.uid, phase=phase)
    scene.until_quiet(within_ms=2_000)
    return scene.verdict(group.name)


def test_every_api_with_groups_is_here() -> None:
    found = {one.name for one in dialects() for kind in one.kinds if kind.neutral == "podgroup"}
    assert found == {*SPECS, "kubernetes_composite"}


@every_api
@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_group_that_has_ended_keeps_its_status(name: str, phase: str) -> None:
    scene, group = cluster(), stored(name)
    pods = pods_of(group.read())
    status = group.write(finished(scene, group.read(), pods, phase))
    if name in LAST_PHASES:
        assert status["phase"] == LAST_PHASES[name][phase == "Failed"]
    for pod in pods:
        scene.put(group.read())
        scene.remove(scene.pods[pod.uid])
        scene.until_quiet(within_ms=2_000)
        assert scene.verdict("one").phase == "Completed"
        assert _without_times(group.write(scene.verdict("one"))) == _without_times(status)


@every_api
@pytest.mark.parametrize("cleaned", [1, 2])
def test_a_planner_without_storage_knows_what_has_ended(name: str, cleaned: int) -> None:
    scene, group = cluster(), stored(name)
    pods = pods_of(group.read())
    group.write(finished(scene, group.read(), pods, "Succeeded"))
    scene.put(group.read())
    alone = LoggedScene(one for one in scene.objects.values() if not isinstance(one, PodGroup))
    alone.objects = scene.objects
    for pod in pods[cleaned:]:
        alone.pods[pod.uid] = scene.pods[pod.uid]
    alone.restart()
    alone.until_quiet()
    if not alone.pods and group.kind.claims_by_owner:
        # Without pods, a budget is one of any other application.
        assert not alone.published
        return
    verdict = alone.verdict("one")
    assert (verdict.phase, verdict.succeeded, verdict.why) == ("Completed", 2, None)


@every_api
def test_new_pods_of_a_group_that_has_ended_are_placed_whole(name: str) -> None:
    scene, group = cluster(), stored(name)
    pods = pods_of(group.read())
    finished(scene, group.read(), pods, "Succeeded")
    for pod in pods:
        scene.remove(scene.pods[pod.uid])
        scene.until_quiet()
    first, second = (msgspec.structs.replace(pod, uid=f"{pod.uid}-again") for pod in pods)
    scene.put(first)
    scene.until_quiet()
    scene.carry_out()
    assert not scene.pods[first.uid].node
    scene.put(second)
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    assert all(pod.node for pod in scene.pods.values())
    assert scene.verdict("one").phase == "Running"


@every_api
def test_a_verdict_that_was_copied_from_another_group_ends_nothing(name: str) -> None:
    scene, group = cluster(), stored(name)
    pods = pods_of(group.read())
    group.write(finished(scene, group.read(), pods, "Succeeded"))
    group.manifest["metadata"]["uid"] = "uid-copy"
    assert group.read().last_run is None


@pytest.mark.parametrize("text", ["", "{", '{"uid": 1}', '["a"]', '{"succeeded": -3}', "null"])
@every_api
def test_a_verdict_that_a_user_wrote_ends_nothing(name: str, text: str) -> None:
    group = stored(name)
    group.manifest["metadata"]["annotations"] = {VERDICT: text}
    assert group.read().last_run is None


@every_api
def test_counts_that_a_user_wrote_are_bounded(name: str) -> None:
    group = stored(name)
    written = {
        "uid": "uid-one",
        "phase": "Completed",
        "succeeded": 10**18,
        "succeeded_by_role": [["r" * 300, 1], *([f"r{i}", 10**18] for i in range(99))],
    }
    group.manifest["metadata"]["annotations"] = {VERDICT: msgspec.json.encode(written).decode()}
    found = group.read().last_run
    assert found is not None
    assert found.succeeded == 1_000_000
    assert len(found.succeeded_by_role) == 31


def test_a_tree_of_groups_that_has_ended_keeps_its_status() -> None:
    composite = dialect("kubernetes_composite").kinds[0]
    part = next(kind for kind in dialect("kubernetes").kinds if kind.neutral == "podgroup")
    assert (composite.resource, part.resource) == (COMPOSITE_PODGROUPS, PODGROUPS_KUBERNETES)
    policy = {"schedulingPolicy": {"gang": {"minGroupCount": 1}}}
    root = Stored(composite, {"metadata": metadata("root"), "spec": policy}, "kubernetes_composite")
    spec = {**_GANG_OF_TWO, "parentCompositePodGroupName": "root"}
    leaf = Stored(part, {"metadata": metadata("leaf"), "spec": spec}, "kubernetes")
    scene = cluster()
    scene.put(root.read(), leaf.read())
    pods = make_pods("one", 2, FULL, group_name="leaf", group_scope=PODGROUPS_KUBERNETES.title)
    scene.put(*pods)
    scene.until_quiet()
    scene.carry_out(phase="Running")
    scene.until_quiet()
    for pod in pods:
        scene.change(pod.uid, phase="Succeeded")
    scene.until_quiet(within_ms=2_000)
    for one in (root, leaf):
        one.write(scene.verdict(one.manifest["metadata"]["name"]))
        scene.put(one.read())
    alone = LoggedScene(one for one in scene.objects.values() if not isinstance(one, PodGroup))
    alone.objects = scene.objects
    alone.restart()
    alone.until_quiet()
    for pod in pods:
        scene.remove(scene.pods[pod.uid])
        scene.until_quiet(within_ms=2_000)
    for each in (scene, alone):
        for name in ("root", "leaf"):
            assert (each.verdict(name).phase, each.verdict(name).why) == ("Completed", None)


def _without_times(status: dict[str, Any]) -> dict[str, Any]:
    """A status without conditions, which have instants, and without members that are gone."""
    return {k: v for k, v in status.items() if k not in {"members", "conditions"}}
