"""No question that the decoder accepts raises, and none leaves a trace in the planner's state."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from shared.contracts import codec
from shared.contracts.fit_rules import FIT_SHAPES_MAX, broken_rule
from shared.contracts.questions import FIT_PODS_MAX, FitAnswer, FitRequest
from shared.model.objects import HostPort, Pod, PodGroup, Queue, SubGroup, SubGroupSet
from shared.model.terms import PodAffinity, PodTerm, Requirement, Selector, SpreadConstraint
from tests.services.gang_planner.core.claims import (
    hosts,
    make_claim,
    make_class,
    make_device_claim,
    make_device_class,
    make_slice,
    make_volume,
)
from tests.services.gang_planner.core.invariants import validate
from tests.services.gang_planner.core.queries.any_question import ANY_QUESTIONS, SOUND_QUESTIONS
from tests.services.gang_planner.core.scene import GPU, Scene, make_group, make_pods, make_shape

ONE = make_shape({"cpu": 1000})
_SETTINGS = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def a_cluster() -> Scene:
    """Nodes with everything that a question may name, a running gang and a waiting one."""
    scene = Scene(hosts(3, zone="1"))
    gpus = msgspec.structs.replace(make_device_class(), extended_resource=GPU)
    scene.put(make_class(), make_volume("v0", "n0"), make_claim("c0"))
    scene.put(gpus, make_slice("n0", 2), make_device_claim("d0"))
    for name in ("default", "q"):
        scene.put(Queue(uid=name, dialect="volcano", name=name, resource_version=1))
    labels = msgspec.msgpack.encode((("app", "x"),))
    scene.put(make_group("a", 1), *make_pods("a", 2, ONE, labels=labels))
    scene.put(make_group("w", 9), *make_pods("w", 9, make_shape({"cpu": 4000})))
    scene.settle()
    return scene


SCENE = a_cluster()


def answer_to(question: FitRequest) -> FitAnswer:
    received = codec.decode_fit_request(codec.encode(question))
    return codec.decode_fit_answer(codec.encode(SCENE.planner.would_fit(received)))


@_SETTINGS
@given(ANY_QUESTIONS)
def test_every_question_that_can_be_decoded_is_answered(question: FitRequest) -> None:
    answer = answer_to(question)
    assert answer.failure in {None, "invalid"}
    assert (answer.failure == "invalid") >= bool(broken_rule(question))


@_SETTINGS
@given(SOUND_QUESTIONS)
def test_every_sound_question_is_answered_without_a_trace(question: FitRequest) -> None:
    known = list(SCENE.state.resources.names)
    before = SCENE.planner.checkpoint(0), SCENE.planner.ledger()
    answer_to(question)
    assert (SCENE.planner.checkpoint(0), SCENE.planner.ledger()) == before
    classes = "deviceclass.resource.kubernetes.io/gpu"
    assert [one for one in SCENE.state.resources.names if one != classes] == [
        one for one in known if one != classes
    ]
    validate(SCENE.planner)


def group(min_member: int = 1, **fields: Any) -> PodGroup:
    return make_group("asked", min_member, **fields)


def pods(shape: bytes = ONE, **fields: Any) -> tuple[Pod, ...]:
    return tuple(make_pods("asked", 1, shape, **fields))


def within(key: str, weight: int = 0) -> PodTerm:
    return PodTerm(
        selector=Selector(requirements=(Requirement(key=key, operator="Exists"),)),
        namespaces=("team",),
        topology_key="zone",
        weight=weight,
    )


_SPREAD = SpreadConstraint(max_skew=-1, topology_key="zone")


@pytest.mark.parametrize(
    ("question", "rule"),
    [
        (FitRequest(group=group(min_member=-1)), "group.minMember: must be 0 to 2147483647"),
        (FitRequest(group=group(min_member=10**12)), "group.minMember: must be 0 to 2147483647"),
        (
            FitRequest(group=group(min_resources=(("cpu", -5),))),
            "group.minResources[cpu]: must be 0 to 9223372036854775807, and is -5",
        ),
        (FitRequest(group=group(queue="x" * 2_000)), "group.queue: must have at most 1024 char"),
        (
            FitRequest(group=group(), limits=(("limits.cpu", 2**63),)),
            "limits[limits.cpu]: must be 0 to 9223372036854775807",
        ),
        (
            FitRequest(group=group(sets=(SubGroupSet(name="all"),)), pods=pods()),
            "group.sets: must have sub-groups in them",
        ),
        (
            FitRequest(
                group=group(
                    sets=(SubGroupSet(name="all"), SubGroupSet(name="b", set_name="none")),
                    sub_groups=(SubGroup(name="s", set_name="all"),),
                ),
                pods=pods(),
            ),
            "group.sets[b].setName: must be a set before it",
        ),
        (
            FitRequest(
                group=group(
                    sets=(SubGroupSet(name="all"),),
                    sub_groups=(SubGroup(name="s", set_name="b"),),
                ),
                pods=pods(),
            ),
            "group.subGroups[s].setName: must be one of the sets",
        ),
        (FitRequest(group=group(), pods=pods() * 2), "pods[1].uid: must be unique"),
        (FitRequest(group=group(), pods=pods() * (FIT_PODS_MAX + 1)), "pods: must be at most 2000"),
        (FitRequest(group=group(), pods=pods(b"\xc1")), "pods of shape 0: the shape cannot be"),
        (FitRequest(group=group(), pods=pods(labels=b"\xc1")), "pods[0].labels: cannot be decoded"),
        (
            FitRequest(group=group(), pods=pods(make_shape(spread=(_SPREAD,)))),
            "pods of shape 0.topologySpreadConstraints.maxSkew: must be 1 to 2147483647",
        ),
        (
            FitRequest(group=group(), pods=pods(make_shape(host_ports=(HostPort(port=70_000),)))),
            "pods of shape 0.hostPort: must be 1 to 65535, and is 70000",
        ),
        (
            FitRequest(
                group=group(),
                pods=pods(make_shape(pod_affinity=PodAffinity(preferred=(within("a", 2**40),)))),
            ),
            "pods of shape 0.podAffinity.weight: must be 1 to 100",
        ),
    ],
)
def test_a_question_that_breaks_a_rule_is_answered_with_the_field_and_the_rule(
    question: FitRequest, rule: str
) -> None:
    answer = answer_to(question)
    assert (answer.fits, answer.ever, answer.failure) == (False, True, "invalid")
    assert answer.sentence.startswith(rule), answer.sentence
    assert len(codec.encode(answer)) < 10_000


def test_a_question_with_more_kinds_of_pods_than_a_standby_has_time_for_is_not_tried() -> None:
    kinds = [make_shape({"cpu": 1000 + one}) for one in range(FIT_SHAPES_MAX + 1)]
    several = make_pods("asked", len(kinds), ONE)
    changed = [
        msgspec.structs.replace(pod, shape=shape) for pod, shape in zip(several, kinds, strict=True)
    ]
    most = answer_to(FitRequest(group=group(), pods=tuple(changed[:-1])))
    assert most.failure is None
    more = answer_to(FitRequest(group=group(), pods=tuple(changed)))
    assert more.failure == "invalid"
    assert more.sentence.endswith("at most 100 different kinds, there are 101")


def test_rules_about_pods_that_would_be_compared_too_often_are_not_tried() -> None:
    terms = PodAffinity(anti_affinity=tuple(within(f"k{one}") for one in range(200)))
    answer = answer_to(FitRequest(group=group(), pods=pods(make_shape(pod_affinity=terms))))
    assert answer.failure == "invalid"
    assert "affinity terms, spread constraints, tolerations and ports must be" in answer.sentence


def test_terms_that_select_among_more_pods_than_there_is_time_for_are_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each term without a label that a pod must have is compared with all pods."""
    monkeypatch.setattr("services.gang_planner.core.state.inter_pod.profiles._COMPARED_MAX", 20)
    terms = [PodAffinity(anti_affinity=tuple(within(f"k{n}") for n in range(m))) for m in (1, 2)]
    asked = [
        answer_to(FitRequest(group=group(), pods=pods(make_shape(pod_affinity=one))))
        for one in terms
    ]
    assert [one.failure for one in asked] == [None, "invalid"]
    assert "select among too many pods" in asked[1].sentence


def test_a_member_that_waits_already_is_not_counted_twice() -> None:
    waiting = SCENE.pods["w-worker-0"]
    asked = make_group("w", 9, dialect="")
    whole = answer_to(FitRequest(group=asked, pods=(waiting,)))
    assert "3 of 9 pods fit" in whole.sentence
