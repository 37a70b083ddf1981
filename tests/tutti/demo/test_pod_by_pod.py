"""The contrast's scheduler takes one pod after the other, and the first node that has room."""

from collections.abc import Iterable

from shared.kube.objects import Container, ObjectMeta, Pod, PodSpec, ResourceRequirements
from tests.tutti.demo.made_observations import JOB, NODES, bound, ended
from tutti.demo.claims import PodObservation
from tutti.demo.pod_by_pod import fitting


def pod(name: str, resource: str = "nvidia.com/gpu") -> Pod:
    main = Container(name="main", resources=ResourceRequirements(requests={resource: "1"}))
    return Pod(metadata=ObjectMeta(name=name), spec=PodSpec(containers=(main,)))


def placed(pods: list[Pod], *, seen: Iterable[PodObservation] = ()) -> list[tuple[str, str]]:
    found = fitting(pods, NODES, seen)
    return [(each.metadata.name, node) for each, node in found]


def test_what_was_placed_takes_room_from_what_comes_next() -> None:
    pods = [pod(name) for name in "abcdef"]
    assert placed(pods) == [("a", "node-1"), ("b", "node-2"), ("c", "node-3"), ("d", "node-4")]


def test_what_does_not_fit_is_skipped_and_the_next_one_placed() -> None:
    pods = [pod("worker"), pod("ps", "cpu")]
    assert placed([pod("first"), *pods], seen=bound(JOB, 1)) == [
        ("first", "node-4"),
        ("ps", "node-1"),
    ]


def test_pods_that_have_ended_take_no_room() -> None:
    pods = [pod(name) for name in "abcd"]
    latest = {each.uid: each for each in [*bound(JOB, 1), *ended(JOB, 2)]}
    assert len(placed(pods, seen=latest.values())) == 4
