"""Objects of which a field was dropped, because it is too large: their users wait, no others."""

from typing import Any

import msgspec
import pytest

from services.gang_planner.core.constraints.filters import volume_binding
from shared.model import bounds
from shared.model.objects import KINDS, ClusterObject, Pod
from shared.model.reference_objects import Budget, ResourceQuota
from shared.model.terms import Requirement, Selector, SelectorTerm, TooLarge
from tests.services.gang_planner.core.claims import (
    hosts,
    make_claim,
    make_class,
    make_volume,
    members,
    sentence,
)
from tests.services.gang_planner.core.preemption.crowd import (
    WHOLE_GANGS,
    cluster,
    evictions,
    running,
    submit,
)
from tests.services.gang_planner.core.preemption.test_search import put_budget
from tests.services.gang_planner.core.queueing.test_admission import a_group, inside
from tests.services.gang_planner.core.scene import (
    Scene,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.shared.contracts.samples import SAMPLES
from tests.support.golden import Golden

replace = msgspec.structs.replace
MANY = tuple(f"v{number}" for number in range(bounds.ENTRIES_MAX + 1))
WIDE = (Requirement(key="k", operator="In", values=MANY),)
CPU = make_shape({"cpu": 1000})


def too_large(one: Any, **fields: Any) -> Any:
    """The object as the watcher publishes it if these fields are too large."""
    found = bounds.bounded(replace(one, **fields))
    assert bounds.marker_of(found).startswith("TooLarge: ")
    return found


def every_kind() -> list[ClusterObject]:
    """One marked object for each field that can be dropped of each kind."""
    samples: dict[type, Any] = {}
    for sample in SAMPLES:
        for one in getattr(sample, "changed", ()):
            if type(one) in KINDS.values():
                samples.setdefault(type(one), one)
    assert set(samples) == set(KINDS.values())
    found: list[ClusterObject] = []
    for one in samples.values():
        for field in msgspec.structs.fields(type(one)):
            if field.required:
                continue
            marker = TooLarge(field=field.name, rule="is too large")
            uid = f"{type(one).__name__}-{field.name}"
            left = replace(bounds._without(one, field), uid=uid, name=uid)
            if isinstance(left, Pod) and left.node:
                left = replace(left, node="n0")
            found.append(bounds._marked(left, marker))
    return found


def test_a_planner_with_every_marked_object_places_the_gangs_that_use_none_of_them() -> None:
    scene = Scene([make_node("n0", {"cpu": 64_000, "pods": 500})])
    for one in every_kind():
        scene.put(one)
        scene.step()
    scene.put(make_group("good", 2, namespace="prod"))
    scene.put(*make_pods("good", 2, CPU, namespace="prod"))
    decisions = scene.settle()
    assert [one.gang for one in decisions if one.gang.startswith("prod/")] == ["prod/good"]
    scene.load_snapshot([make_node("n0", {"cpu": 64_000, "pods": 500})], objects=every_kind())
    scene.step()


def test_a_budget_whose_selector_is_too_large_protects_all_pods_of_its_namespace_only() -> None:
    budget = Budget(uid="b", namespace="team", name="b", resource_version=1, disruptions_allowed=9)
    budget = too_large(budget, selector=Selector(requirements=WIDE))
    for namespace, expected in (("team", 0), ("other", 1)):
        scene = cluster(1, WHOLE_GANGS + "  - name: pdb\n")
        running(scene, "low", 1)
        put_budget(scene, replace(budget, namespace=namespace))
        submit(scene, "high", 1, priority=10)
        scene.until_quiet()
        assert len(evictions(scene)) == expected


def test_a_quota_that_is_too_large_admits_no_group_of_its_namespace_and_is_named(
    golden: Golden,
) -> None:
    conf = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: resourcequota}]}]'
    scene = Scene([make_node("n0")], conf=conf)
    quota = ResourceQuota(uid="rq", namespace="team", name="compute", resource_version=1)
    scene.put(too_large(quota, hard=tuple((f"count/{one}", 9) for one in MANY[:300])))
    scene.put(a_group("a", 3), a_group("elsewhere", 3, namespace="other"))
    scene.settle()
    assert inside(scene, "a", "elsewhere") == [False, True]
    why = scene.verdict("a").why
    assert why is not None
    assert why.reason == "NotEnoughQuota"
    golden(why.sentence)


@pytest.mark.parametrize("kind", ["claim", "class", "bound volume", "free volume"])
def test_a_gang_waits_for_storage_that_is_too_large_and_its_message_names_it(kind: str) -> None:
    claim, found, volume = make_claim("data"), make_class(), make_volume("a", "n0")
    selector = Selector(requirements=WIDE)
    terms = (SelectorTerm(expressions=WIDE),)
    named = ""
    if kind == "claim":
        claim = too_large(claim, selector=selector)
        named = 'persistentvolumeclaim "data": TooLarge: spec.selector has 10002 entries'
    elif kind == "class":
        found = too_large(found, allowed_topologies=terms)
        named = f'storageclass "{found.name}": TooLarge: allowedTopologies has 10003 entries'
    elif kind == "bound volume":
        volume = too_large(volume, node_affinity=terms)
        claim = replace(claim, volume_name=volume.name, bind_completed=True)
        named = 'persistentvolume "a": TooLarge: spec.nodeAffinity has 10003 entries'
    else:
        volume = too_large(volume, labels=tuple((one, "") for one in MANY))
        named = volume_binding.NONE_FOUND
    scene = Scene(hosts(1))
    scene.put(found, volume, make_group("g", 1), claim, *members("g", [("data",)]))
    scene.put(make_group("good", 1), *make_pods("good", 1, CPU))
    assert [one.gang for one in scene.settle()] == ["team/good"]
    scene.step(after_ms=3000)
    assert named in sentence(scene, "g")


def test_a_claim_that_is_bound_does_not_need_its_selector_any_more() -> None:
    volume = make_volume("a", "n0")
    claim = too_large(make_claim("data"), selector=Selector(requirements=WIDE))
    claim = replace(claim, volume_name=volume.name, bind_completed=True)
    scene = Scene(hosts(1))
    scene.put(make_class(), volume, make_group("g", 1), claim, *members("g", [("data",)]))
    assert [one.gang for one in scene.settle()] == ["team/g"]


def test_a_pod_that_is_too_large_keeps_its_gang_waiting_and_its_message_names_the_field() -> None:
    requests = {f"e.x/{number}": 1 for number in range(5000)}
    shape = bounds.judged_shape(make_shape(requests), on_node=False)
    scene = Scene([make_node("n0")])
    scene.put(make_group("evil", 1), *make_pods("evil", 1, shape))
    scene.put(make_group("good", 1), *make_pods("good", 1, CPU))
    assert [one.gang for one in scene.settle()] == ["team/good"]
    scene.step(after_ms=3000)
    assert scene.verdict("evil").why is not None
    assert (
        "TooLarge: spec.containers.resources.requests has 5001 resources, and Tutti judges at "
        "most 256" in sentence(scene, "evil")
    )


def test_a_pod_that_is_not_judged_takes_its_amounts_on_its_node() -> None:
    requests = {"cpu": 4000, **{f"e.x/{number}": 1 for number in range(300)}}
    shape = bounds.judged_shape(make_shape(requests), on_node=True)
    scene = Scene([make_node("n0", {"cpu": 4000, "pods": 10})])
    (there,) = make_pods("evil", 1, shape, ours=False)
    scene.put(replace(there, node="n0", phase="Running"))
    scene.put(make_group("good", 1), *make_pods("good", 1, CPU))
    assert not scene.settle()
    scene.remove(there)
    assert [one.gang for one in scene.settle()] == ["team/good"]
