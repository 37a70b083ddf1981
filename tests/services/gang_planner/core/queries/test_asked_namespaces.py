"""A question about a namespace: whether it exists, and the queue that it names."""

import msgspec

from shared.contracts.questions import AskedNamespace, EarlierGang, EqualPods, FitAnswer, FitRequest
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

CPU = make_shape({"cpu": 1000})


def a_question(size: int = 2, queue: str = "default", dialect: str = "volcano") -> FitRequest:
    return FitRequest(
        group=make_group("q", size, queue=queue, dialect=dialect),
        pods=tuple(make_pods("q", size, CPU)),
        complete=True,
    )


def a_scene() -> Scene:
    """The namespace `team` names a queue of one CPU."""
    scene = Scene([make_node("n0")])
    scene.put(Namespace(uid="ns", name="team", resource_version=1, queue="small"))
    for name, cpu in (("small", 1000), ("large", 9000)):
        fields = {"dialect": "volcano", "resource_version": 1, "capability": amounts(cpu=cpu)}
        scene.put(Queue(uid=name, name=name, **fields))  # type: ignore[arg-type]  # fields of a Queue, by name
    return scene


def ask(scene: Scene, question: FitRequest) -> FitAnswer:
    return scene.planner.would_fit(question)


def test_a_gang_is_asked_about_in_the_queue_that_its_namespace_names() -> None:
    scene = a_scene()
    for queue in ("", "default"):
        assert "queue small can never hold it" in ask(scene, a_question(queue=queue)).sentence
    assert ask(scene, a_question(1)).fits
    assert ask(scene, a_question(queue="large")).fits
    # kube-batch's webhook reads no queue of the namespace.
    assert ask(scene, a_question(dialect="incubator")).fits
    # A review of the webhook has the queue that admission has chosen.
    assert ask(scene, msgspec.structs.replace(a_question(), complete=False)).fits


def test_an_earlier_gang_is_in_that_queue_too() -> None:
    (pod,) = make_pods("first", 1, CPU)
    group = make_group("first", 1, queue="default", dialect="volcano")
    first = EarlierGang(group=group, pods=(EqualPods(pod=pod),))
    answer = ask(a_scene(), msgspec.structs.replace(a_question(1), earlier=(first,)))
    assert "queue small is at its capability" in answer.sentence


def test_a_namespace_that_does_not_exist_refuses_the_gang() -> None:
    scene = a_scene()
    other = msgspec.structs.replace(a_question().group, namespace="teem")
    question = msgspec.structs.replace(a_question(), group=other)
    answer = ask(scene, question)
    assert (answer.fits, answer.refused) == (False, True)
    assert answer.sentence == "namespace teem does not exist"
    made = (AskedNamespace(name="teem"),)
    assert ask(scene, msgspec.structs.replace(question, namespaces=made)).fits
    made = (AskedNamespace(name="teem", queue="small"),)
    answer = ask(scene, msgspec.structs.replace(question, namespaces=made))
    assert "queue small can never hold it" in answer.sentence
    # While no namespace is known, none is missing.
    assert ask(Scene([make_node("n0")]), question).fits
