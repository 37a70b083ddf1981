"""Would this gang fit, now and ever? Answered without leaving a trace."""

from typing import Any

import msgspec
import pytest

from shared.contracts.questions import FitAnswer, FitRequest
from shared.model.objects import HostPort, Queue, Resources, SubGroup, Taint
from shared.model.reference_objects import ResourceQuota
from tests.services.gang_planner.core.claims import make_device_claim
from tests.services.gang_planner.core.invariants import validate
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
from tests.support.golden import Golden

FULL = make_shape({"cpu": 4000})
QUARTER = make_shape({"cpu": 1000})


def ask(
    scene: Scene, size: int, shape: bytes, *, limits: Resources = (), **group: Any
) -> FitAnswer:
    pods = tuple(make_pods("q", size, shape))
    question = FitRequest(group=make_group("q", size, **group), pods=pods, limits=limits)
    return scene.planner.would_fit(question)


def test_a_gang_that_fits_now() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    where = (("n0", 1), ("n1", 1))
    assert ask(scene, 2, FULL) == FitAnswer(fits=True, ever=True, where=where)


def test_a_gang_that_would_fit_if_the_nodes_were_empty() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL))
    scene.settle()
    answer = ask(scene, 2, FULL)
    assert (answer.fits, answer.ever) == (False, True)
    assert "1 of 2 pods fit" in answer.sentence


def test_a_gang_that_no_set_of_nodes_here_could_ever_hold(golden: Golden) -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    answer = ask(scene, 3, make_shape({GPU: 1}))
    assert (answer.fits, answer.ever) == (False, False)
    golden(answer.sentence)


def test_ports_and_selectors_count_on_empty_nodes_too() -> None:
    scene = Scene([make_node("n0")])
    assert not ask(scene, 2, make_shape({"cpu": 1}, host_ports=(HostPort(port=80),))).ever
    assert not ask(scene, 1, make_shape({"cpu": 1}, node_selector=(("a", "b"),))).ever


def test_a_gang_above_its_queues_capability_never_fits(golden: Golden) -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(
        Queue(
            uid="q",
            dialect="volcano",
            name="small",
            resource_version=1,
            capability=amounts(cpu=5000),
        )
    )
    answer = ask(scene, 2, FULL, queue="small")
    assert (answer.fits, answer.ever) == (False, False)
    golden(answer.sentence)


@pytest.mark.parametrize(
    ("name", "hard", "published"),
    [
        ("pods", 1, "ResourceQuota team/small allows 1 pods, the gang needs 2"),
        (
            "requests.cpu",
            7000,
            "ResourceQuota team/small allows 7 cpu, the gang needs 8 cpu at least",
        ),
        ("cpu", 7000, "ResourceQuota team/small allows 7 cpu, the gang needs 8 cpu at least"),
        ("requests.cpu", 8000, ""),
        (
            "limits.cpu",
            9000,
            "ResourceQuota team/small allows limits of 9 cpu, the gang needs 12 cpu at least",
        ),
        ("limits.cpu", 12_000, ""),
        ("limits.memory", 1, ""),
    ],
)
def test_a_gang_above_its_namespaces_quota_never_fits(name: str, hard: int, published: str) -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    quota = ResourceQuota(
        uid="q", namespace="team", name="small", resource_version=1, hard=((name, hard),)
    )
    scene.put(quota)
    answer = ask(scene, 2, FULL, limits=(("limits.cpu", 12_000),))
    assert (answer.ever, answer.sentence) == (not published, published)


@pytest.mark.parametrize(
    ("name", "hard", "published"),
    [
        ("pods", 8, "ResourceQuota team/small allows 8 pods, the gang needs 9"),
        ("cpu", 3000, "ResourceQuota team/small allows 3 cpu, the gang needs 4 cpu at least"),
        (
            "limits.cpu",
            5000,
            "ResourceQuota team/small allows limits of 5 cpu, the gang needs 6 cpu at least",
        ),
        ("requests.cpu", 4000, ""),
        ("limits.cpu", 6000, ""),
        ("count/services", 0, ""),
    ],
)
def test_a_group_without_pods_whose_minimum_is_above_a_quota_never_fits(
    name: str, hard: int, published: str
) -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    quota = ResourceQuota(
        uid="q", namespace="team", name="small", resource_version=1, hard=((name, hard),)
    )
    scene.put(quota)
    minimum = amounts(**{"cpu": 4000, "limits.cpu": 6000})
    group = make_group("q", 9, min_resources=minimum)
    answer = scene.planner.would_fit(FitRequest(group=group))
    assert (answer.ever, answer.sentence) == (not published, published)


def test_a_quota_of_another_namespace_or_scope_says_nothing() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    here = ResourceQuota(
        uid="q", namespace="team", name="small", resource_version=1, hard=(("pods", 1),)
    )
    scene.put(
        msgspec.structs.replace(here, uid="a", namespace="other"),
        msgspec.structs.replace(here, uid="b", name="best", scopes=("BestEffort",)),
    )
    assert ask(scene, 2, FULL).fits


def test_an_answer_that_cannot_be_known_is_not_promised() -> None:
    scene = Scene([make_node("n0")])
    answer = ask(scene, 1, make_shape({"cpu": 1}, unsupported=("spec.resourceClaims",)))
    assert (answer.fits, answer.ever) == (False, False)
    assert "spec.resourceClaims" in answer.sentence


def test_without_pods_the_declared_minimum_is_compared_with_all_nodes_together() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL))
    scene.settle()

    def answered(**minimum: int) -> tuple[bool, bool]:
        group = make_group("q", 9, min_resources=amounts(**minimum))
        answer = scene.planner.would_fit(FitRequest(group=group))
        return answer.fits, answer.ever

    assert answered(cpu=4000) == (True, True)
    assert answered(cpu=8000) == (False, True)
    assert answered(cpu=8001) == (False, False)
    assert answered(gpu=3) == (False, False)
    assert answered(**{"limits.cpu": 99_000, "count/pods": 9}) == (True, True)


def test_a_question_leaves_no_trace() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("a", 1), *make_pods("a", 1, FULL))
    scene.settle()
    state = scene.state
    before = (
        state.node_capacity.free.cells.tolist(),
        len(state.shapes.entries),
        sorted(state.queues.entries),
        state.node_capacity.freed,
    )
    ask(scene, 1, make_shape({"cpu": 123}), queue="unheard-of")
    ask(scene, 99, make_shape({"cpu": 124, "new.example/x": 1}))
    validate(scene.planner)
    after = (
        state.node_capacity.free.cells.tolist(),
        len(state.shapes.entries),
        sorted(state.queues.entries),
        state.node_capacity.freed,
    )
    assert after == before
    assert scene.settle() == []


def test_sub_gangs_are_asked_about_each_in_a_rack_of_its_own() -> None:
    """Racks of eight pods: two stages of six fit, one in each; a third finds only what is left."""
    stages = SubGroup(name="stage", size=6, match_label_keys=("stage",), topology=racks.ONE_RACK)

    def asked(count: int) -> FitAnswer:
        found = racks.scene(rows=1)
        pods = [
            msgspec.structs.replace(pod, uid=f"{stage}-{pod.uid}", name=f"{stage}-{pod.name}")
            for stage in range(count)
            for pod in make_pods(
                "q", 6, QUARTER, labels=msgspec.msgpack.encode((("stage", str(stage)),))
            )
        ]
        group = make_group("q", 6 * count, sub_groups=(stages,))
        return found.planner.would_fit(FitRequest(group=group, pods=tuple(pods)))

    two, three = asked(2), asked(3)
    assert two.fits
    assert sum(count for _, count in two.where) == 12
    assert (three.fits, three.ever) == (False, False)


def test_a_pod_is_asked_about_with_those_of_its_group_that_wait_already() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_group("g", 5), *make_pods("g", 4, QUARTER))
    assert scene.settle() == []
    (pod,) = make_pods("g", 1, QUARTER, role="last")
    alone = make_group("g", 1, dialect="", uid="asked")
    question = FitRequest(group=alone, pods=(pod,))
    answer = scene.planner.would_fit(question)
    assert (answer.fits, answer.ever) == (False, False)
    assert "4 of 5 pods fit" in answer.sentence
    scene.put(make_node("n1"))
    assert sum(count for _, count in scene.planner.would_fit(question).where) == 5
    stranger = msgspec.structs.replace(pod, group_name="")
    question = FitRequest(group=alone, pods=(stranger,))
    assert scene.planner.would_fit(question).where == (("n0", 1),)


def test_a_gang_of_a_queue_that_does_not_exist_or_is_closed_would_be_refused(
    golden: Golden,
) -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    answer = ask(scene, 2, FULL, queue="none")
    assert (answer.fits, answer.refused) == (False, True)
    golden(answer.sentence)
    scene.put(Queue(name="q", uid="queue-q", dialect="volcano", resource_version=1, state="Closed"))
    answer = ask(scene, 2, FULL, queue="q")
    assert (answer.refused, answer.sentence) == (True, "queue q is Closed")


def test_a_gang_of_a_queue_with_child_queues_would_wait_as_its_verdict_says() -> None:
    tree = "tiers: [{plugins: [{name: capacity, enableHierarchy: true}]}]"
    scene = Scene([make_node("n0")], conf=f'actions: "enqueue, allocate"\n{tree}')
    for name, parent in (("dept", ""), ("team", "dept")):
        scene.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1, parent=parent))
    answer = ask(scene, 1, FULL, queue="dept")
    assert (answer.fits, answer.ever, answer.refused) == (False, True, False)
    scene.put(make_group("real", 1, queue="dept"), *make_pods("real", 1, FULL))
    scene.settle()
    why = scene.verdict("real").why
    assert why is not None
    assert (why.reason, why.sentence) == ("QueueNotLeaf", answer.sentence)


@pytest.mark.parametrize(
    "away",
    [
        {"unschedulable": True},
        {"ready": False},
        {"taints": (Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),)},
        {"taints": (Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule"),)},
        {
            "taints": (
                Taint(key="node.cloudprovider.kubernetes.io/uninitialized", effect="NoSchedule"),
            )
        },
    ],
    ids=["cordoned", "not ready", "tainted as not ready", "tainted as cordoned", "starting"],
)
def test_a_node_that_may_return_could_hold_the_gang(away: dict[str, Any]) -> None:
    scene = Scene([make_node("n0", **away)])
    answer = ask(scene, 1, QUARTER)
    assert (answer.fits, answer.ever, answer.needs_nodes) == (False, True, False)
    assert "0 of 1 pods fit" in answer.sentence


def test_a_lasting_taint_keeps_a_gang_out_of_an_empty_node() -> None:
    scene = Scene([make_node("n0", taints=(Taint(key="team", value="b", effect="NoSchedule"),))])
    assert not ask(scene, 1, QUARTER).ever


def test_a_gang_whose_claim_is_missing_waits_for_the_claim_and_needs_no_nodes() -> None:
    claiming = make_shape({"cpu": 1_000}, claims=("ghost",), namespace="team")
    answer = ask(Scene([make_node("n0")]), 1, claiming)
    assert (answer.fits, answer.ever, answer.needs_nodes) == (False, True, False)
    assert answer.sentence.endswith('persistentvolumeclaim "ghost" not found')


def test_a_gang_whose_device_is_not_supported_can_never_run_and_needs_no_nodes() -> None:
    scene = Scene([make_node("n0")])
    scene.put(make_device_claim("gpu", unsupported=("spec.devices.config",)))
    answer = ask(scene, 1, make_shape({"cpu": 1}, device_claims=("gpu",), namespace="team"))
    assert (answer.fits, answer.ever, answer.needs_nodes) == (False, False, False)


def test_only_what_no_node_could_cure_never_runs() -> None:
    """Nodes may be added for it, but none raises a quota or a capability."""
    scene = Scene([make_node("n0")])
    assert ask(scene, 2, FULL).needs_nodes
    minimum = make_group("q", 2, min_resources=amounts(cpu=9000))
    assert scene.planner.would_fit(FitRequest(group=minimum)).needs_nodes
    scene.put(
        Queue(
            uid="q",
            dialect="volcano",
            name="small",
            resource_version=1,
            capability=amounts(cpu=5000),
        ),
        ResourceQuota(
            uid="r", namespace="team", name="few", resource_version=1, hard=(("pods", 2),)
        ),
    )
    above_capability, above_quota = ask(scene, 2, FULL, queue="small"), ask(scene, 3, QUARTER)
    assert not above_capability.ever
    assert not above_capability.needs_nodes
    assert not above_quota.ever
    assert not above_quota.needs_nodes


@pytest.mark.parametrize(
    ("name", "hard", "used", "published"),
    [
        ("pods", 3, 2, "ResourceQuota team/team has 2 of 3 pods used, the gang needs 2"),
        ("pods", 3, 1, ""),
        (
            "requests.cpu",
            10_000,
            3_000,
            "ResourceQuota team/team has 3 cpu of 10 cpu used, the gang needs 8 cpu at least",
        ),
        ("requests.cpu", 10_000, 2_000, ""),
        (
            "limits.cpu",
            14_000,
            3_000,
            "ResourceQuota team/team has limits of 3 cpu of 14 cpu used, the gang needs 12 cpu "
            "at least",
        ),
        ("limits.memory", 1, 2, ""),
    ],
)
def test_a_gang_waits_for_what_its_namespaces_quota_has_in_use(
    name: str, hard: int, used: int, published: str
) -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    quota = ResourceQuota(
        uid="q",
        namespace="team",
        name="team",
        resource_version=1,
        hard=((name, hard),),
        used=((name, used),),
    )
    scene.put(quota)
    answer = ask(scene, 2, FULL, limits=(("limits.cpu", 12_000),))
    assert (answer.fits, answer.ever, answer.sentence) == (not published, True, published)


def test_pods_that_exist_are_in_use_already() -> None:
    scene = Scene([make_node("n0"), make_node("n1")])
    scene.put(make_group("q", 2), *make_pods("q", 1, FULL, role="first"))
    quota = ResourceQuota(
        uid="u",
        namespace="team",
        name="a",
        resource_version=1,
        hard=(("pods", 2),),
        used=(("pods", 1),),
    )
    scene.put(quota)
    (pod,) = make_pods("q", 1, FULL, role="second")
    group = make_group("q", 2, dialect="")
    assert scene.planner.would_fit(FitRequest(group=group, pods=(pod,))).fits
