"""What cluster-autoscaler does with Tutti's marks, by its recorded rules (`cluster_autoscaler.py`):
the planner explains a gang, the status controller marks its pods, and the rules choose among them.
"""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from services.binder.active_decision import pod_annotations
from services.controller.core.statuses.intents import pod_mark, pod_word
from services.controller.provisioning_controller import ProvisioningController
from shared.contracts import annotations
from shared.contracts.provisioning import parse_request_name
from shared.contracts.verdicts import PodSet, Provisioning
from shared.kube.resources import Resource
from shared.kube.transport import Reply
from shared.model.objects import NetworkTopology, Queue, Taint, Toleration
from shared.model.reference_objects import ProvisioningRequest, ProvisioningState
from tests.conformance.cluster_autoscaler import (
    BOOKED_MS,
    CHECK_CAPACITY,
    CLASSES,
    TAINT_PREFIXES,
    Bookings,
    is_listed,
    keeps_node,
    pods_to_help,
    take_up,
)
from tests.controlplane.client import Object
from tests.controlplane.nodes import pod_manifest
from tests.controlplane.requests import Requests
from tests.services.controller.core.samples import make_verdict
from tests.services.gang_planner.core.losing import queue_up
from tests.services.gang_planner.core.losing import running as run_and_lose
from tests.services.gang_planner.core.preemption.crowd import cluster, submit
from tests.services.gang_planner.core.preemption.crowd import running as run_gang
from tests.services.gang_planner.core.scene import (
    GPU,
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.services.gang_planner.core.topology import racks

#: A third of a node.
THIRD = make_shape({"cpu": 1_200})
CORES = make_shape({"cpu": 4_000})
ONE_ZONE = NetworkTopology(mode="hard", label_key="zone")


def marked(scene: Scene, gang: str, cpu: str) -> list[Object]:
    """The waiting pods of a gang, as the API server has them after the controller's patches."""
    scene.settle()
    verdict = scene.verdict(gang)
    assert verdict.why is not None
    assert verdict.waiting
    found = []
    for index, ref in enumerate(verdict.waiting):
        word = pod_word(verdict, verdict.why, index)
        pod = pod_manifest(ref.name, requests={"cpu": cpu})
        patch = pod_mark(ref, verdict.why, word, at_ms=0).body["status"]
        found.append({**pod, "status": {"phase": "Pending", **patch}})
    return found


def unschedulable(pods: list[Object]) -> list[Object]:
    """These pods, as they would be marked without Tutti's other reasons."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return [{**pod, "status": {**pod.get("status", {}), "conditions": [condition]}} for pod in pods]


def free(**milli: int) -> dict[str, Requests]:
    return {name.replace("_", "-"): {"cpu": cpu, "pods": 110} for name, cpu in milli.items()}


def test_it_adds_nodes_for_the_members_that_lack_one_until_the_gang_is_placed_whole() -> None:
    """A node with room for three is there: two more are needed, and come one after the other."""
    scene = Scene([make_node("n-0")])
    scene.put(make_group("job", 8), *make_pods("job", 8, THIRD))
    nodes = free(n_0=4_000)
    for helped, name in ((5, "new_0"), (2, "new_1")):
        assert len(pods_to_help(marked(scene, "job", "1200m"), nodes)) == helped
        assert not scene.decisions
        nodes |= free(**{name: 4_000})
        scene.put(make_node(name))
        scene.step(after_ms=6_000)
    (decision,) = [one for _, one in scene.decisions]
    assert len(decision.bindings) == 8


def test_a_gang_that_waits_for_quota_or_its_victims_gets_no_node() -> None:
    scene = Scene([make_node("n-0")])
    queue = Queue(
        uid="q", dialect="volcano", name="q", resource_version=1, capability=amounts(cpu=1_000)
    )
    scene.put(queue, make_group("job", 1, queue="q"), *make_pods("job", 1, CORES))
    assert pods_to_help(marked(scene, "job", "4"), free()) == []
    scene = cluster(4)
    run_gang(scene, "low", 4, minimum=1)
    submit(scene, "high", 2, priority=10)
    scene.until_quiet()
    waiting = marked(scene, "high", "4")
    assert pods_to_help(waiting, free()) == []
    for pod in unschedulable(waiting):
        assert pods_to_help([pod], {pod["status"]["nominatedNodeName"]: {}}) == []


@pytest.mark.parametrize("zones", ["ab", "aab"])
def test_a_gang_whose_domain_is_full_gets_no_node_for_part_of_it(zones: str) -> None:
    """It would count the free capacity of other domains, and add too few nodes, or none."""
    scene = Scene(
        make_node(f"n-{index}", labels=(("zone", zone),)) for index, zone in enumerate(zones)
    )
    members = len(zones) + 1
    scene.put(make_group("job", members, topology=ONE_ZONE), *make_pods("job", members, CORES))
    waiting = marked(scene, "job", "4")
    assert pods_to_help(waiting, free()) == []
    nodes = free(**{f"n_{index}": 4_000 for index in range(len(zones))})
    assert len(pods_to_help(unschedulable(waiting), nodes)) == 1, "this is what the mark prevents"


def test_a_gang_for_hypernodes_that_list_their_nodes_gets_no_node() -> None:
    scene = Scene([make_node("n-0"), make_node("n-1")])
    scene.put(racks.hypernode("rack", 1, racks.exactly("n-0"), racks.exactly("n-1")))
    scene.put(make_group("job", 3, topology=racks.ONE_RACK), *make_pods("job", 3, CORES))
    assert pods_to_help(marked(scene, "job", "4"), free()) == []


def test_a_gang_that_a_reservation_keeps_out_gets_no_node() -> None:
    scene = run_and_lose()
    queue_up(scene)
    scene.remove(scene.pods["job-worker-1"])
    scene.settle()
    scene.step(after_ms=6_000)
    waiting = marked(scene, "rival", "4")
    assert {pod["status"]["conditions"][0]["reason"] for pod in waiting} == {"CapacityReserved"}
    assert pods_to_help(waiting, free()) == []


def test_only_members_without_any_node_are_listed_and_a_cheap_pod_is_expendable() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "NotEnoughQuota"}
    pod = pod_manifest("w-0", requests={"cpu": "4"})
    pod["status"] = {"phase": "Pending", "conditions": [condition]}
    assert not is_listed(pod)
    (pod,) = unschedulable([pod])
    assert is_listed(pod)
    assert pods_to_help([pod], free()) == ["w-0"]
    assert pods_to_help([pod], free(n_0=4_000)) == []
    assert not is_listed({**pod, "spec": {**pod["spec"], "nodeName": "n-0"}})
    assert pods_to_help([{**pod, "spec": {**pod["spec"], "priority": -11}}], free()) == []


def test_the_annotation_that_tutti_writes_keeps_a_node() -> None:
    pod = pod_manifest("w-0", annotations={annotations.SAFE_TO_EVICT: "false"})
    assert keeps_node([pod_manifest("other"), pod])
    assert not keeps_node([pod_manifest("other")])


class Written:
    """An API server with the gang's pods, that keeps what the controller creates, in order."""

    def __init__(self, pods: list[Object]) -> None:
        self.created: list[Object] = []
        self._pods = {one["metadata"]["name"]: one for one in pods}

    async def create(self, _: Resource, manifest: Object, *, namespace: str) -> None:
        self.created.append({**manifest, "namespace": namespace})

    async def request(self, _: str, path: str) -> Reply:
        body = msgspec.json.encode(self._pods[path.rsplit("/", 1)[1]])
        return Reply(200, body, {})


async def test_a_request_is_never_seen_without_its_templates() -> None:
    """It would fail it, whenever it looks."""
    metadata = {"namespace": "team", "uid": "u"}
    pods = [{**pod_manifest(name), "metadata": {**metadata, "name": name}} for name in ("a", "b")]
    api = Written(pods)
    bus = cast("Any", SimpleNamespace(new_inbox=lambda: "inbox"))
    controller = ProvisioningController(bus, cast("Any", api), lambda: True, print)
    sets = tuple(PodSet(name=name, uid="u", count=2) for name in ("a", "b"))
    wanted = Provisioning(request="tutti-g-000000000000-1", class_name=CLASSES[0], pod_sets=sets)
    await controller._write(make_verdict(uid="", dialect="", provisioning=wanted))
    kinds = [one["kind"] for one in api.created]
    assert kinds == ["PodTemplate", "PodTemplate", "ProvisioningRequest"]
    *templates, request = api.created
    names = [one["metadata"]["name"] for one in templates]
    assert take_up(request, names) == ("Accepted", "Accepted")
    assert take_up(request, names[:1]) == ("Failed", "FailedToCreatePods")


def provisioned_scene() -> tuple[Scene, str]:
    """A gang of two whose queue asks for a request, the first of its nodes, and the request."""
    scene = Scene([make_node("n-0")])
    scene.dialects = ("cluster_autoscaler",)
    settings = ((annotations.PROVISIONING_CLASS, CLASSES[0]),)
    queue = Queue(uid="q", dialect="volcano", name="q", resource_version=1, settings=settings)
    scene.put(queue, make_group("job", 2, queue="q"), *make_pods("job", 2, CORES))
    scene.settle()
    wanted = scene.verdict("job").provisioning
    assert wanted is not None
    return scene, wanted.request


def answer(scene: Scene, request: str, state: ProvisioningState, version: int = 1) -> None:
    name = parse_request_name(request)
    assert name is not None
    scene.put(
        ProvisioningRequest(
            uid="r",
            namespace="team",
            name=request,
            resource_version=version,
            gang_id=name.gang_id,
            digest=name.digest,
            attempt=name.attempt,
            state=state,
        )
    )


def test_no_node_is_added_beside_those_of_a_request() -> None:
    scene, request = provisioned_scene()
    assert pods_to_help(marked(scene, "job", "4"), free(n_0=4_000)) == []
    answer(scene, request, "Provisioned")
    waiting = marked(scene, "job", "4")
    assert {pod["status"]["conditions"][0]["reason"] for pod in waiting} == {"Provisioned"}
    assert pods_to_help(waiting, free(n_0=4_000)) == []


def test_pods_that_are_bound_by_a_request_are_never_listed_again() -> None:
    """Their annotation says that the request has provided for them."""
    scene, request = provisioned_scene()
    scene.put(make_node("n-1"))
    answer(scene, request, "Provisioned")
    (decision,) = scene.settle()
    notes = pod_annotations(decision, 1, "g")
    pods = [pod_manifest(one.name, annotations=notes) for one in decision.bindings]
    (waiting, _) = unschedulable(pods)
    assert is_listed(waiting)
    assert pods_to_help([waiting], {}) == []


class Booked:
    """A planner whose queue asks for requests, beside the bookings of an autoscaler. Its nodes have
    one GPU each.
    """

    def __init__(self, class_name: str, nodes: int, nodes_max: int) -> None:
        self.scene = Scene([])
        self.scene.dialects = ("cluster_autoscaler",)
        settings = ((annotations.PROVISIONING_CLASS, class_name),)
        self.scene.put(
            Queue(uid="q", dialect="volcano", name="q", resource_version=1, settings=settings)
        )
        self.autoscaler = Bookings(nodes, nodes_max)
        self.requests: dict[str, Object] = {}
        #: As many of its nodes get ready.
        self.joining = nodes_max
        self._nodes = self._version = self._carried_out = 0

    def submit(self, name: str, size: int) -> None:
        one = make_shape({GPU: 1})
        self.scene.put(make_group(name, size, queue="q"), *make_pods(name, size, one))

    def play(self, seconds: int) -> None:
        """Let all of them work, with a loop each ten seconds. Pods that are decided run at once."""
        for _ in range(0, seconds, 10):
            while self._nodes < min(self.autoscaler.nodes, self.joining):
                self.scene.put(make_node(f"n-{self._nodes}"))
                self._nodes += 1
            self.scene.step(after_ms=10_000)
            self.scene.settle()
            for _, decision in self.scene.decisions[self._carried_out :]:
                self.scene.run(decision)
            self._carried_out = len(self.scene.decisions)
            self.scene.settle()
            self._write()
            bound = sum(bool(pod.node) for pod in self.scene.pods.values())
            found = self.autoscaler.loop(self.requests, bound, self.scene.now_ms)
            for name, state in found.items():
                self._answer(name, cast("ProvisioningState", state))

    def _write(self) -> None:
        """Do what the controller does with the verdicts."""
        for verdict in list(self.scene.verdicts.values()):
            wanted = verdict.provisioning
            if wanted is None:
                continue
            for name in wanted.obsolete:
                if self.requests.pop(name, None) is not None:
                    self.scene.remove(self._read(name, ""))
            if wanted.request and wanted.request not in self.requests:
                spec: Object = {
                    "provisioningClassName": wanted.class_name,
                    "podSets": [{"count": one.count} for one in wanted.pod_sets],
                }
                self.requests[wanted.request] = {"spec": spec}
                self._answer(wanted.request, "")

    def _answer(self, name: str, state: ProvisioningState) -> None:
        self.scene.put(self._read(name, state))

    def _read(self, name: str, state: ProvisioningState) -> ProvisioningRequest:
        parts = parse_request_name(name)
        assert parts is not None
        self._version += 1
        return ProvisioningRequest(
            uid=name,
            namespace="team",
            name=name,
            resource_version=self._version,
            gang_id=parts.gang_id,
            digest=parts.digest,
            attempt=parts.attempt,
            state=state,
        )

    def placed(self, name: str) -> int:
        return sum(bool(pod.node) for pod in self.scene.pods_of(name))


def test_a_second_gang_gets_the_capacity_that_is_free_beside_a_placed_one() -> None:
    """The booking of the first one would hide it for ten minutes."""
    played = Booked(CHECK_CAPACITY, nodes=16, nodes_max=16)
    played.submit("a", 8)
    played.play(60)
    assert played.placed("a") == 8
    played.submit("b", 8)
    played.play(60)
    assert played.placed("b") == 8
    assert played.requests == {}


def test_no_node_is_bought_for_the_booking_of_a_placed_gang() -> None:
    best_effort = CLASSES[0]
    played = Booked(best_effort, nodes=0, nodes_max=16)
    played.submit("a", 2)
    played.play(60)
    assert (played.placed("a"), played.autoscaler.bought) == (2, 2)
    played.submit("b", 2)
    played.play(60)
    assert (played.placed("b"), played.autoscaler.bought) == (2, 4)


@pytest.mark.parametrize("class_name", CLASSES)
def test_the_end_of_a_booking_changes_nothing_for_a_placed_gang(class_name: str) -> None:
    played = Booked(class_name, nodes=2, nodes_max=2)
    played.submit("a", 2)
    played.play(60)
    played.play(BOOKED_MS // 1000)
    assert played.placed("a") == 2
    verdict = played.scene.verdict("a")
    assert verdict.provisioning is None
    assert "ProvisioningFailed" not in {one.type for one in verdict.conditions}


def test_the_next_request_follows_a_booking_that_ended_before_its_gang_was_placed() -> None:
    """One of its nodes was not ready in time."""
    played = Booked(CLASSES[0], nodes=0, nodes_max=8)
    played.joining = 1
    played.submit("a", 2)
    played.play(30)
    (first,) = played.requests
    played.play(BOOKED_MS // 1000)
    assert played.placed("a") == 0
    (second,) = played.requests
    assert second != first
    played.joining = 8
    played.play(60)
    assert played.placed("a") == 2
    assert played.autoscaler.bought == 2


def purchases(scene: Scene, loops: int) -> int:
    """Nodes of 4 CPUs that it adds for the gang `job`: one while it lists a pod that does not fit,
    and it removes one that no listed pod would use (rules 1 to 4, and 14).
    """
    added: list[str] = []
    bought = 0
    for _ in range(loops):
        waiting = marked(scene, "job", "4")
        if pods_to_help(waiting, {name: {"cpu": 4_000, "pods": 110} for name in added}):
            bought += 1
            added.append(f"bought-{bought}")
            scene.put(make_node(added[-1]))
        elif added and not any(map(is_listed, waiting)):
            scene.remove(make_node(added.pop()))
        scene.step(after_ms=10_000)
    return bought


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(0, 1, id="it is tried once, because no kind of node is known"),
        pytest.param(1, 0, id="a node of that kind exists, and is full"),
    ],
)
def test_no_node_is_bought_again_and_again_for_a_part_of_min_resources(
    nodes: int, expected: int
) -> None:
    """One pod of 4 CPUs, and a group that declares 8; nodes have 4."""
    scene = Scene([make_node(f"n-{index}") for index in range(nodes)])
    for index in range(nodes):
        full = make_shape({"cpu": 4_000})
        scene.put(*make_pods("", 1, full, node=f"n-{index}", role=f"full-{index}", ours=False))
    scene.put(make_group("job", 1, min_resources=(("cpu", 8_000),)), *make_pods("job", 1, CORES))
    assert purchases(scene, loops=30) == expected


def test_a_bypassed_scheduler_is_helped_before_tutti_has_judged_its_pods() -> None:
    """So `--bypassed-scheduler-names` must not name one of Tutti's: the first seconds of a gang
    that waits for quota would buy nodes. Afterwards its condition has a reason.
    """
    pod = pod_manifest("w-0", requests={"cpu": "4"})
    scheduler = pod["spec"]["schedulerName"]
    assert not is_listed(pod)
    assert is_listed(pod, bypassed=(scheduler,))
    condition = {"type": "PodScheduled", "status": "False", "reason": "NotEnoughQuota"}
    pod["status"] = {"phase": "Pending", "conditions": [condition]}
    assert not is_listed(pod, bypassed=(scheduler,))
    # The API server writes this one with a pod that is created with a scheduling gate.
    gated = {**condition, "reason": "SchedulingGated"}
    pod["status"] = {"phase": "Pending", "conditions": [gated]}
    assert not is_listed(pod, bypassed=(scheduler,))


def test_a_class_that_it_does_not_know_gets_no_answer() -> None:
    """So the gang's verdict names it after a while (`NotAccepted`)."""
    spec: Object = {"provisioningClassName": "misspelt.example.com", "podSets": []}
    assert take_up({"spec": spec}, ()) is None


@pytest.mark.parametrize("prefix", TAINT_PREFIXES)
def test_no_gang_starts_on_nodes_that_it_takes_for_not_ready(prefix: str) -> None:
    taint = Taint(key=f"{prefix}driver", effect="NoSchedule")
    everything = (Toleration(operator="Exists"),)
    scene = Scene([make_node("n-0", taints=(taint,))])
    shape = make_shape({"cpu": 4_000}, tolerations=everything)
    scene.put(make_group("job", 1), *make_pods("job", 1, shape))
    assert scene.settle() == []
