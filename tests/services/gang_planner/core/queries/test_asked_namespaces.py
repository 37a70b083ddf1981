"""A question about a namespace: whether it exists, and the queue that it names."""

import msgspec
import pytest

from shared.contracts.questions import EarlierGang, EqualPods, FitAnswer, FitRequest
from shared.model.objects import Queue
from shared.model.reference_objects import Namespace
from tests.services.gang_planner.core.scene import (
    Scene,
    amounts,
    make_group,
    make_node,
    make_pods,
    make_shape,
)
from tests.support.golden import Golden

CPU = make_shape({"cpu": 1000})


def a_question(size: int = 2, queue: str = "") -> FitRequest:
    """In its namespace's queue if it names none, as judgements ask."""
    group = make_group("q", size, queue=queue, dialect="volcano", queue_of_namespace=True)
    return FitRequest(group=group, pods=tuple(make_pods("q", size, CPU)), complete=True)


@pytest.fixture
def scene() -> Scene:
    """The namespace `team` names a queue of one CPU."""
    found = Scene([make_node("n0")])
    found.put(Namespace(uid="ns", name="team", resource_version=1, queue="small"))
    for name, cpu in (("small", 1000), ("large", 9000)):
        capability = amounts(cpu=cpu)
        queue = Queue(uid=name, dialect="volcano", name=name, resource_version=1)
        found.put(msgspec.structs.replace(queue, capability=capability))
    return found


def ask(scene: Scene, question: FitRequest) -> FitAnswer:
    return scene.planner.would_fit(question)


def test_a_gang_is_asked_about_in_the_queue_that_its_namespace_names(scene: Scene) -> None:
    assert "queue small can never hold it" in ask(scene, a_question()).sentence
    assert ask(scene, a_question(1)).fits
    assert ask(scene, a_question(queue="large")).fits


def test_an_earlier_gang_is_in_that_queue_too(scene: Scene) -> None:
    (pod,) = make_pods("first", 1, CPU)
    group = make_group("first", 1, dialect="volcano", queue_of_namespace=True)
    first = EarlierGang(group=group, pods=(EqualPods(pod=pod),))
    answer = ask(scene, msgspec.structs.replace(a_question(1), earlier=(first,)))
    assert "queue small is at its capability" in answer.sentence


def test_a_namespace_that_does_not_exist_refuses_the_gang(scene: Scene, golden: Golden) -> None:
    other = msgspec.structs.replace(a_question().group, namespace="teem")
    question = msgspec.structs.replace(a_question(), group=other)
    answer = ask(scene, question)
    assert (answer.fits, answer.refused) == (False, True)
    golden(answer.sentence)
    assert ask(scene, msgspec.structs.replace(question, namespaces=("teem",))).fits
    # While no namespace is known, none is missing.
    assert ask(Scene([make_node("n0")]), question).fits
