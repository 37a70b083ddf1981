"""Queues: amounts, the tree, what cannot be deleted, and their defaults."""

from typing import Any

import pytest

from shared.kube.resources import QUEUES_INCUBATOR, QUEUES_SIGS, Resource
from tests.services.admission_webhook.reviews import (
    Object,
    a_queue,
    defaulted,
    judged,
    reference_objects,
    review,
    texts,
    volcano_queue,
)
from tests.support.golden import Golden

GIB = 2**30
TREE = reference_objects(
    volcano_queue(
        "house",
        capability=(("cpu", 8000), ("memory", 8 * GIB)),
        deserved=(("cpu", 6000),),
        guarantee=(("cpu", 4000),),
    ),
    volcano_queue("room", parent="house", deserved=(("cpu", 3000),), guarantee=(("cpu", 2000),)),
    volcano_queue("attic", parent="house"),
    volcano_queue("plain"),
    volcano_queue("lv1"),
    volcano_queue("lv2", parent="lv1"),
    volcano_queue("lv3", parent="lv2"),
    volcano_queue("lv4", parent="lv3"),
    volcano_queue("lv5", parent="lv4"),
    volcano_queue("knot", parent="loop"),
    volcano_queue("loop", parent="knot"),
)

GOOD: list[tuple[str, Object]] = [
    ("nothing", {}),
    ("an open tree", {"parent": "plain"}),
    ("as deep as can be", {"parent": "lv4"}),
    ("the default queue as parent", {"parent": "default"}),
    ("the capability of its parent", {"parent": "house", "capability": {"cpu": 8}}),
    ("what its parent has left", {"parent": "house", "deserved": {"cpu": 3}}),
    ("anything below root", {"deserved": {"cpu": 1000}, "guarantee": {"resource": {"cpu": 1000}}}),
    ("a parent that is its own ancestor", {"parent": "knot"}),
]

BAD: list[tuple[str, Object, list[str]]] = [
    (
        "a parent that does not exist",
        {"parent": "nowhere"},
        [
            'spec.parent: Invalid value: "nowhere": failed to get parent queue nowhere of '
            'queue trial: queue.scheduling.volcano.sh "nowhere" not found'
        ],
    ),
    (
        "itself as parent",
        {"parent": "trial"},
        ["spec.parent: queue trial cannot use itself as parent"],
    ),
    (
        "a place too deep",
        {"parent": "lv5"},
        ['spec.parent: Invalid value: "lv5": queue trial exceeds the maximum allowed depth of 5'],
    ),
    (
        "more capability than an ancestor",
        {"parent": "attic", "capability": {"cpu": 9, "memory": "9Gi"}},
        [
            "spec.capability.cpu: queue trial capability[cpu]=9 exceeds "
            "its ancestor's capability=8",
            "spec.capability.memory: queue trial capability[memory]=9Gi exceeds "
            "its ancestor's capability=8Gi",
        ],
    ),
    (
        "more than its siblings leave",
        {"parent": "house", "deserved": {"cpu": 4}, "guarantee": {"resource": {"cpu": 3}}},
        [
            "spec.deserved: parent queue house validation failed: "
            "sum of children's deserved (cpu 7) exceeds parent's deserved limit (cpu 6)",
            "spec.guarantee: parent queue house validation failed: "
            "sum of children's guarantee (cpu 5) exceeds parent's guarantee limit (cpu 4)",
        ],
    ),
    (
        "what its parent does not have at all",
        {"parent": "plain", "deserved": {"memory": "1Gi"}},
        [
            "spec.deserved: parent queue plain validation failed: sum of children's deserved "
            "(memory 1Gi) exceeds parent's deserved limit (memory 0)"
        ],
    ),
    (
        "wrong types everywhere",
        {"parent": 7, "weight": "much", "capability": ["cpu"], "deserved": {"cpu": "x"}},
        [
            'spec.weight: Invalid value: "much": must be an integer',
            "spec.parent: Invalid value: 7: must be a string",
            "spec.capability: Invalid value: ['cpu']: must be an object",
        ],
    ),
]


@pytest.mark.parametrize("spec", [row[1] for row in GOOD], ids=[row[0] for row in GOOD])
def test_a_queue_is_admitted_with(spec: Object) -> None:
    assert texts(a_queue(**spec), TREE) == []


@pytest.mark.parametrize(("spec", "errors"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_queue_is_refused_for(spec: Object, errors: list[str]) -> None:
    assert texts(a_queue(**spec), TREE)[: len(errors)] == errors


def test_a_parent_cannot_promise_less_than_its_children_have(golden: Golden) -> None:
    spec: Object = {"deserved": {"cpu": 2}, "guarantee": {"resource": {"cpu": 1}}}
    old = a_queue("house", deserved={"cpu": 6}, guarantee={"resource": {"cpu": 4}})
    errors = judged(review(a_queue("house", **spec), old=old), TREE).errors
    assert [error.path for error in errors] == ["spec.deserved", "spec.guarantee"]
    golden(*(error.text for error in errors))


def test_the_amounts_of_root_cannot_be_changed() -> None:
    old = a_queue("root", weight=1)
    assert texts(a_queue("root", weight=3), TREE, old=old) == []
    (error,) = texts(a_queue("root", weight=1, capability={"cpu": 1}), TREE, old=old)
    assert error.startswith("spec.capability: root queue's resource attributes")


@pytest.mark.parametrize(
    ("name", "errors"),
    [
        ("plain", []),
        ("default", ["metadata.name: `default` queue can not be deleted"]),
        ("root", ["metadata.name: `root` queue can not be deleted"]),
        (
            "house",
            [
                "metadata.name: queue house can not be deleted because it has 2 child queues: "
                "attic, room"
            ],
        ),
    ],
)
def test_a_queue_that_others_need_cannot_be_deleted(name: str, errors: list[str]) -> None:
    verdict = judged(review(None, old=a_queue(name)), TREE)
    assert [error.text for error in verdict.errors] == errors


def test_without_queues_the_tree_is_not_looked_at() -> None:
    unknown = reference_objects(known=False)
    assert texts(a_queue(parent="nowhere"), unknown) == []
    assert judged(review(None, old=a_queue("house")), unknown).allowed


@pytest.mark.parametrize("resource", [QUEUES_INCUBATOR, QUEUES_SIGS], ids=lambda one: one.group)
def test_queues_of_kube_batch_know_weight_and_capability(resource: Resource) -> None:
    assert texts(a_queue(resource=resource, weight=0, capability={"cpu": 1})) == []
    assert [text.partition(":")[0] for text in texts(a_queue(resource=resource, weight=-1))] == [
        "spec.weight"
    ]


@pytest.mark.parametrize(
    ("queue", "spec"),
    [
        (a_queue(), {"weight": 1, "reclaimable": True}),
        (a_queue() | {"spec": None}, {"weight": 1, "reclaimable": True}),
        (a_queue(weight=0, reclaimable=False), {"weight": 1, "reclaimable": False}),
        (a_queue(weight=7, reclaimable=True), {"weight": 7, "reclaimable": True}),
        (a_queue(weight="7"), {"weight": "7", "reclaimable": True}),
        (a_queue() | {"spec": 4}, 4),
    ],
    ids=["nothing", "no spec", "weight 0", "all said", "a wrong type", "a spec that is none"],
)
def test_a_queue_gets_weight_and_reclaimable(queue: Object, spec: object) -> None:
    assert defaulted(queue)["spec"] == spec


@pytest.mark.parametrize(
    ("path", "weights", "result"),
    [
        ("sci/dev", "2/3", ("root/sci/dev", "1/2/3")),
        ("root/sci", "1/2", ("root/sci", "1/2")),
        ("rooted", "1", ("root/rooted", "1/1")),
        ("sci", "", ("sci", "")),
    ],
)
def test_a_hierarchy_hangs_below_root(path: str, weights: str, result: tuple[str, str]) -> None:
    queue: dict[str, Any] = a_queue(weight=1, reclaimable=True)
    keys = ("volcano.sh/hierarchy", "volcano.sh/hierarchy-weights")
    queue["metadata"]["annotations"] = dict(zip(keys, (path, weights), strict=True))
    notes = defaulted(queue)["metadata"]["annotations"]
    assert tuple(notes[key] for key in keys) == result
