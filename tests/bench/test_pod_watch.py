"""What is worked out of sightings: time in part, and nodes with too much on them."""

from bench.pod_watch import PodWatch, Sighting


def seen(bound: dict[str, tuple[float, str]]) -> PodWatch:
    watch = PodWatch()
    for name, (bound_s, node) in bound.items():
        watch.pods[name] = Sighting(f"uid-{name}", 0.0, bound_s, node)
    return watch


def test_partial_gang_seconds_are_from_each_gangs_first_binding_to_its_last() -> None:
    watch = seen({"a0": (1.0, "n"), "a1": (1.5, "n"), "b0": (9.0, "n"), "b1": (9.25, "n")})
    assert watch.partial_gang_s(["a0", "a1", "b0", "b1"], 2) == 0.75
    assert watch.partial_gang_s(["c0", "c1"], 2) == 0.0


def test_nodes_with_more_pods_than_have_room_are_counted() -> None:
    watch = seen({"a": (1.0, "n0"), "b": (1.0, "n0"), "c": (1.0, "n1"), "d": (0.0, "")})
    assert watch.overfull(1) == 1
    assert watch.overfull(2) == 0
