"""Gangs whose pods have terms about other pods, from record to decision."""

from typing import Any

import msgspec
import pytest

from shared.contracts.questions import FitRequest
from shared.model.objects import Node, Pod
from shared.model.reference_objects import Namespace
from shared.model.terms import PodAffinity, PodTerm, Requirement, Selector, SpreadConstraint
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)

ZONE = "zone"
HOST = "kubernetes.io/hostname"


def app(name: str) -> Selector:
    return Selector(requirements=(Requirement(key="app", operator="In", values=(name,)),))


def term(name: str, key: str, **fields: Any) -> PodTerm:
    given = {"selector": app(name), "namespaces": ("team",), "topology_key": key, **fields}
    return PodTerm(**given)


def labelled(**labels: str) -> bytes:
    return msgspec.msgpack.encode(tuple(sorted(labels.items())))


def nodes(count: int, zones: int, cpu: int = 4000) -> list[Node]:
    return [
        make_node(
            f"n{i}",
            {"cpu": cpu, "memory": 16 << 30, "pods": 110},
            labels=((HOST, f"n{i}"), (ZONE, f"z{i % zones}")),
        )
        for i in range(count)
    ]


def gang(name: str, count: int, shape: bytes, *, least: int = 0, **fields: Any) -> list[Any]:
    labels = fields.pop("labels", labelled(app=name))
    return [
        make_group(name, least or count),
        *make_pods(name, count, shape, labels=labels, **fields),
    ]


def running(name: str, node: str, shape: bytes, **labels: str) -> Pod:
    (pod,) = make_pods(name, 1, shape, labels=labelled(**labels), ours=False, group_name="")
    return msgspec.structs.replace(pod, node=node, phase="Running")


def sentence(scene: Scene, name: str) -> str:
    why = scene.verdict(name).why
    assert why is not None
    return why.sentence


def zones(scene: Scene, decision: Any) -> list[str]:
    return sorted(f"z{int(node[1:]) % 2}" for node in scene.where(decision).values())


def test_members_that_keep_apart_get_a_node_each_or_none() -> None:
    shape = make_shape({"cpu": 100}, pod_affinity=PodAffinity(anti_affinity=(term("a", HOST),)))
    scene = Scene(nodes(3, 1))
    scene.put(*gang("a", 4, shape))
    assert not scene.settle()
    why = sentence(scene, "a")
    assert "3 node(s) didn't match pod anti-affinity rules" in why
    assert "3 of 4 pods fit" in why
    scene.put(nodes(4, 1)[3])
    (decision,) = scene.settle()
    assert sorted(scene.where(decision).values()) == ["n0", "n1", "n2", "n3"]


def test_members_that_must_be_near_each_other_choose_the_zone_that_holds_them_all() -> None:
    shape = make_shape({"cpu": 1000}, pod_affinity=PodAffinity(affinity=(term("a", ZONE),)))
    small = nodes(4, 2)
    # Zone 0 has the freest node, and room for five; zone 1 for eight.
    scene = Scene(small)
    scene.put(running("filler", "n2", make_shape({"cpu": 3000})))
    scene.put(*gang("a", 8, shape))
    (decision,) = scene.settle()
    assert set(zones(scene, decision)) == {"z1"}


def test_a_gang_that_must_be_near_others_waits_for_them_and_is_placed_when_they_come() -> None:
    shape = make_shape({"cpu": 100}, pod_affinity=PodAffinity(affinity=(term("db", ZONE),)))
    scene = Scene(nodes(4, 2))
    scene.put(*gang("web", 2, shape))
    assert not scene.settle()
    assert "4 node(s) didn't match pod affinity rules" in sentence(scene, "web")
    scene.put(running("db", "n1", make_shape({"cpu": 100}), app="db"))
    (decision,) = scene.settle()
    assert zones(scene, decision) == ["z1", "z1"]


def test_a_gang_that_waits_for_others_is_placed_when_a_decision_places_these() -> None:
    near = make_shape({"cpu": 100}, pod_affinity=PodAffinity(affinity=(term("db", ZONE),)))
    scene = Scene(nodes(4, 2))
    scene.put(*gang("web", 2, near))
    assert not scene.settle()
    scene.put(*gang("db", 1, make_shape({"cpu": 100})))
    placed = scene.settle()
    assert [len(one.bindings) for one in placed] == [1, 2]


def test_roles_of_one_gang_may_need_each_other() -> None:
    worker = make_shape({"cpu": 100})
    launcher = make_shape({"cpu": 100}, pod_affinity=PodAffinity(affinity=(term("w", HOST),)))
    scene = Scene(nodes(2, 1))
    scene.put(make_group("job", 3))
    scene.put(*make_pods("job", 2, worker, labels=labelled(app="w")))
    scene.put(*make_pods("job", 1, launcher, role="launcher", labels=labelled(app="l")))
    (decision,) = scene.settle()
    assert len(decision.bindings) == 3


def test_pods_that_run_keep_others_out_by_their_own_terms() -> None:
    """The selector is new when the second pod comes: known pods are matched again."""
    scene = Scene(nodes(2, 2))
    scene.put(running("old", "n0", make_shape({"cpu": 100}), app="web"))
    lonely = make_shape({"cpu": 100}, pod_affinity=PodAffinity(anti_affinity=(term("web", HOST),)))
    scene.put(*gang("first", 2, make_shape({"cpu": 100}), labels=labelled(app="web")))
    scene.put(running("lonely", "n1", lonely, app="other"))
    (decision,) = scene.settle()
    assert set(scene.where(decision).values()) == {"n0"}
    scene.put(*gang("second", 1, lonely))
    (second,) = scene.settle()
    assert list(scene.where(second).values()) == ["n1"]


def test_a_changed_label_opens_the_node_that_it_closed() -> None:
    shape = make_shape({"cpu": 100}, pod_affinity=PodAffinity(anti_affinity=(term("web", HOST),)))
    scene = Scene(nodes(1, 1))
    scene.put(running("old", "n0", make_shape({"cpu": 100}), app="web"))
    scene.put(*gang("new", 1, shape))
    assert not scene.settle()
    scene.change("old-worker-0", labels=labelled(app="other"))
    assert len(scene.settle()) == 1


def test_terms_reach_namespaces_by_their_labels_as_these_change() -> None:
    reach = term(
        "web",
        HOST,
        namespaces=(),
        namespace_selector=Selector(
            requirements=(Requirement(key="team", operator="In", values=("red",)),)
        ),
    )
    shape = make_shape({"cpu": 100}, pod_affinity=PodAffinity(anti_affinity=(reach,)))
    scene = Scene(nodes(1, 1))
    space = Namespace(uid="ns", name="other", resource_version=1, labels=(("team", "red"),))
    scene.put(space)
    old = running("old", "n0", make_shape({"cpu": 100}), app="web")
    scene.put(msgspec.structs.replace(old, namespace="other"))
    scene.put(*gang("new", 1, shape))
    assert not scene.settle()
    scene.put(msgspec.structs.replace(space, resource_version=2, labels=()))
    assert len(scene.settle()) == 1


@pytest.mark.parametrize("size", [1, 6])
def test_members_are_spread_evenly_over_zones(size: int) -> None:
    even = SpreadConstraint(max_skew=1, topology_key=ZONE, selector=app("a"))
    shape = make_shape({"cpu": 100}, spread=(even,), namespace="team")
    scene = Scene(nodes(6, 2))
    scene.put(running("old", "n0", make_shape({"cpu": 100}), app="a"))
    scene.put(*gang("a", size, shape))
    (decision,) = scene.settle()
    assert zones(scene, decision).count("z1") == size // 2 + (size == 1)


def test_a_gang_that_cannot_be_spread_waits_whole_and_says_so() -> None:
    even = SpreadConstraint(max_skew=1, topology_key=ZONE, selector=app("a"))
    shape = make_shape({"cpu": 1000}, spread=(even,), namespace="team")
    scene = Scene(nodes(2, 2))
    scene.put(running("filler", "n0", make_shape({"cpu": 4000})))
    scene.put(*gang("a", 2, shape))
    assert not scene.settle()
    assert "1 node(s) didn't match pod topology spread constraints" in sentence(scene, "a")
    scene.remove(scene.pods["filler-worker-0"])
    (decision,) = scene.settle()
    assert zones(scene, decision) == ["z0", "z1"]


def test_terminating_pods_count_for_anti_affinity_but_not_for_spread() -> None:
    even = SpreadConstraint(max_skew=1, topology_key=ZONE, selector=app("a"))
    scene = Scene(nodes(2, 2, cpu=1000))
    scene.put(running("old", "n0", make_shape({"cpu": 100}), app="a"))
    scene.put(running("filler", "n1", make_shape({"cpu": 1000})))
    scene.put(
        *gang(
            "even",
            1,
            make_shape({"cpu": 100}, spread=(even,), namespace="team"),
            labels=labelled(app="a"),
        )
    )
    apart = PodAffinity(anti_affinity=(term("a", ZONE),))
    assert not scene.settle()
    scene.change("old-worker-0", deleting=True)
    (decision,) = scene.settle()
    assert zones(scene, decision) == ["z0"]
    scene.put(*gang("apart", 1, make_shape({"cpu": 100}, pod_affinity=apart)))
    assert not scene.settle()


def test_preferred_terms_decide_among_nodes_that_fit() -> None:
    like = PodAffinity(preferred=(term("db", HOST, weight=100),))
    avoid = PodAffinity(preferred_anti=(term("db", HOST, weight=100),))
    scene = Scene(nodes(3, 1, cpu=64_000))
    scene.put(running("db", "n1", make_shape({"cpu": 100}), app="db"))
    scene.put(*gang("near", 1, make_shape({"cpu": 100}, pod_affinity=like)))
    (near,) = scene.settle()
    assert list(scene.where(near).values()) == ["n1"]
    scene.put(*gang("far", 2, make_shape({"cpu": 100}, pod_affinity=avoid)))
    (far,) = scene.settle()
    assert "n1" not in scene.where(far).values()


def test_soft_spread_levels_zones_of_unequal_size() -> None:
    soft = SpreadConstraint(
        max_skew=1, topology_key=ZONE, selector=app("a"), when_unsatisfiable="ScheduleAnyway"
    )
    shape = make_shape({"cpu": 100}, spread=(soft,), namespace="team")
    many = [*nodes(2, 2), *(make_node(f"n{i}", labels=((ZONE, "z0"),)) for i in (10, 12, 14, 16))]
    scene = Scene(many, conf="tiers: [{plugins: [{name: predicates}, {name: nodeorder}]}]")
    scene.put(*gang("a", 4, shape))
    (decision,) = scene.settle()
    assert zones(scene, decision) == ["z0", "z0", "z1", "z1"]


def test_switches_of_the_predicates_policy_leave_terms_out() -> None:
    shape = make_shape({"cpu": 100}, pod_affinity=PodAffinity(anti_affinity=(term("a", HOST),)))
    conf = (
        "tiers: [{plugins: [{name: predicates, arguments: {predicate.PodAffinityEnable: false}}]}]"
    )
    scene = Scene(nodes(1, 1), conf=conf)
    scene.put(*gang("a", 2, shape))
    assert len(scene.settle()) == 1


@pytest.mark.parametrize("known", [True, False], ids=["a known selector", "a new selector"])
def test_a_question_about_terms_is_answered_by_what_runs_and_leaves_no_trace(known: bool) -> None:
    apart = make_shape({"cpu": 100}, pod_affinity=PodAffinity(anti_affinity=(term("web", HOST),)))
    scene = Scene(nodes(2, 1))
    scene.put(running("web", "n0", make_shape({"cpu": 100}), app="web"))
    if known:
        scene.put(*gang("waits", 3, apart, labels=labelled(app="web")))
        assert not scene.settle()
    state = scene.state
    before = state.node_capacity.pairs.content()
    version = state.shapes.terms.version
    for count, fits in ((1, True), (2, False)):
        pods = make_pods("asked", count, apart, labels=labelled(app="web"))
        question = FitRequest(group=make_group("asked", count), pods=tuple(pods))
        answer = scene.planner.would_fit(question)
        assert answer.fits == fits
        assert answer.ever
    assert state.node_capacity.pairs.content() == before
    assert state.shapes.terms.version == version
    validate(scene.planner)


def test_a_lost_member_that_keeps_apart_is_not_put_beside_a_later_pod() -> None:
    apart = make_shape({"cpu": 100}, pod_affinity=PodAffinity(anti_affinity=(term("a", HOST),)))
    scene = Scene(nodes(3, 1))
    scene.put(*gang("a", 2, apart))
    (decision,) = scene.settle()
    scene.run(decision)
    scene.settle()
    lost = scene.pods["a-worker-0"]
    scene.change(lost.uid, phase="Failed")
    scene.settle()
    scene.put(running("intruder", lost.node, make_shape({"cpu": 100}), app="a"))
    again = msgspec.structs.replace(lost, uid="again", name="again", node="", phase="Pending")
    scene.put(again)
    (restored,) = scene.settle()
    places = {*scene.where(restored).values(), scene.pods["a-worker-1"].node, lost.node}
    assert len(places) == 3


def test_the_order_in_which_selectors_were_seen_decides_nothing() -> None:
    """A gang whose pods mean different things to others, on nodes for which they compete."""
    shape = make_shape({"cpu": 3000})
    placed: list[dict[str, str]] = []
    for seen in (("x", "y"), ("y", "x")):
        scene = Scene(nodes(3, 1))
        for name in seen:
            keeps = PodAffinity(anti_affinity=(term(name, HOST),))
            lonely = make_shape({"cpu": 100}, pod_affinity=keeps)
            node = {"x": "n0", "y": "n1"}[name]
            scene.put(running(f"keeps-{name}", node, lonely, app="other"))
        members = make_pods("job", 3, shape)
        names = ("x", "y", "z")
        scene.put(make_group("job", 1))
        scene.put(
            *(
                msgspec.structs.replace(pod, labels=labelled(app=name))
                for pod, name in zip(members, names, strict=True)
            )
        )
        placed.append({k: v for one in scene.settle() for k, v in scene.where(one).items()})
    assert placed[0] == placed[1]
    assert len(placed[0]) == 3


def test_a_pod_may_change_its_labels_and_begin_to_ask_for_them_at_once() -> None:
    scene = Scene(nodes(2, 1))
    (pod,) = make_pods("a", 1, make_shape({"cpu": 100}), labels=labelled(old="x"))
    scene.put(make_group("a", 1), pod)
    (decision,) = scene.settle()
    scene.run(decision)
    keeps = PodAffinity(anti_affinity=(term("a", HOST),))
    shape = make_shape({"cpu": 200}, pod_affinity=keeps)
    scene.change(pod.uid, labels=labelled(app="a"), shape=shape)
    scene.settle()
    scene.put(*gang("b", 2, make_shape({"cpu": 100}), labels=labelled(app="a")))
    (other,) = scene.settle()
    assert set(scene.where(other).values()).isdisjoint(scene.where(decision).values())
    scene.remove(scene.pods[pod.uid])
    scene.settle()
