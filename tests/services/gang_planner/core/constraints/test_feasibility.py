"""Columns against a naive reading of Kubernetes' rules, node by node, on random small clusters."""

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from services.gang_planner.core.configuration.configuration import parse_configuration
from services.gang_planner.core.constraints.feasibility import Fits
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.state.columns import ResourceIndex
from services.gang_planner.core.state.node_capacity import NodeCapacity
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeTable
from shared.model.objects import HostPort, Node, Requirement, SelectorTerm, Shape, Taint, Toleration

KEYS = st.sampled_from(["a", "b", "kubernetes.io/x"])
VALUES = st.sampled_from(["", "1", "2", "10", "-3", "x", "n0"])
EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
PORTS = st.builds(
    HostPort,
    port=st.sampled_from([80, 81]),
    protocol=st.sampled_from(["TCP", "UDP"]),
    ip=st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2"]),
)


def pairs(
    keys: st.SearchStrategy[str], values: st.SearchStrategy[str]
) -> st.SearchStrategy[tuple[tuple[str, str], ...]]:
    return st.dictionaries(keys, values, max_size=3).map(lambda found: tuple(sorted(found.items())))


def resources(most: int) -> st.SearchStrategy[tuple[tuple[str, int], ...]]:
    names = st.sampled_from(["cpu", "memory", "pods", "example.com/gpu"])
    return st.dictionaries(names, st.integers(0, most)).map(
        lambda found: tuple(sorted(found.items()))
    )


REQUIREMENTS = st.builds(
    Requirement,
    key=KEYS,
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Nonsense"]),
    values=st.lists(VALUES, max_size=2).map(tuple),
)
FIELDS = st.builds(
    Requirement,
    key=st.sampled_from(["metadata.name", "metadata.name", "spec.other"]),
    operator=st.sampled_from(["In", "NotIn"]),
    values=st.lists(st.sampled_from(["n0", "n1", "n9"]), min_size=1, max_size=2).map(tuple),
)
TERMS = st.builds(
    SelectorTerm,
    expressions=st.lists(REQUIREMENTS, max_size=2).map(tuple),
    fields=st.lists(FIELDS, max_size=1).map(tuple),
)
TOLERATIONS = st.builds(
    Toleration,
    key=st.sampled_from(
        ["", "k", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"]
    ),
    operator=st.sampled_from(["", "Equal", "Exists", "Gt"]),
    value=st.sampled_from(["", "v"]),
    effect=st.sampled_from(["", "NoSchedule", "NoExecute"]),
)
SHAPES = st.builds(
    Shape,
    requests=resources(3),
    node_selector=pairs(KEYS, VALUES),
    node_affinity=st.none() | st.lists(TERMS, max_size=2).map(tuple),
    tolerations=st.lists(TOLERATIONS, max_size=2).map(tuple),
    host_ports=st.lists(PORTS, max_size=2).map(tuple),
)


@st.composite
def nodes(draw: st.DrawFn) -> list[Node]:
    return [
        Node(
            uid=f"u{i}",
            name=f"n{i}",
            resource_version=1,
            labels=draw(pairs(KEYS, VALUES)),
            allocatable=draw(resources(8)),
            taints=tuple(
                draw(
                    st.lists(
                        st.builds(
                            Taint,
                            key=st.just("k"),
                            value=st.sampled_from(["", "v"]),
                            effect=EFFECTS,
                        ),
                        max_size=2,
                    )
                )
            ),
            unschedulable=draw(st.booleans()),
            ready=draw(st.booleans()),
        )
        for i in range(draw(st.integers(1, 5)))
    ]


# ---------------------------------------------------------------------------- the naive reading


def tolerated(shape: Shape, taint: Taint) -> bool:
    for one in shape.tolerations:
        if one.effect not in {"", taint.effect}:
            continue
        if one.operator == "Exists" and one.key in {"", taint.key}:
            return True
        if one.operator in {"", "Equal"} and one.key == taint.key and one.value == taint.value:
            return True
    return False


def number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def holds(requirement: Requirement, value: str | None) -> bool:
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            bound = number(requirement.values[0]) if len(requirement.values) == 1 else None
            have = number(value) if value is not None else None
            if bound is None or have is None:
                return False
            return have > bound if requirement.operator == "Gt" else have < bound
        case _:
            return False


def selected(shape: Shape, node: Node) -> bool:
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in shape.node_selector):
        return False
    if shape.node_affinity is None:
        return True
    for term in shape.node_affinity:
        if not term.expressions and not term.fields:
            continue
        if all(holds(one, labels.get(one.key)) for one in term.expressions) and all(
            one.key == "metadata.name" and holds(one, node.name) for one in term.fields
        ):
            return True
    return False


def clash(one: HostPort, other: HostPort) -> bool:
    every = {"", "0.0.0.0"}
    same_ip = one.ip == other.ip or bool({one.ip, other.ip} & every)
    return one.port == other.port and one.protocol == other.protocol and same_ip


def refusal(shape: Shape, node: Node, running: list[Shape]) -> str:
    """Kubernetes' rules in its order; "" when one more pod of the shape may be there."""
    if node.unschedulable and not tolerated(
        shape, Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    ):
        return "unschedulable"
    if not node.ready and not tolerated(
        shape, Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
    ):
        return "not ready"
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not tolerated(shape, taint):
            return "taint"
    if not selected(shape, node):
        return "affinity"
    for other in running:
        if any(clash(mine, theirs) for mine in shape.host_ports for theirs in other.host_ports):
            return "ports"
    free = Counter(dict(node.allocatable))
    for other in running:
        free.subtract(dict(other.requests))
    if any(amount > free[name] for name, amount in shape.requests if amount):
        return "resources"
    return ""


def naive_count(shape: Shape, node: Node, running: list[Shape], most: int) -> int:
    there = list(running)
    while len(there) - len(running) < most and not refusal(shape, node, there):
        there.append(shape)
    return len(there) - len(running)


# ---------------------------------------------------------------------------------------- tests


class Columns:
    """The columns under test, with pods on them."""

    def __init__(self, listed: list[Node]) -> None:
        self.shapes = ShapeTable(ResourceIndex())
        self.nodes = NodeTable(self.shapes.resources)
        self.node_capacity = NodeCapacity(self.nodes)
        policies = parse_configuration("").policies(State())
        self.fits = Fits(
            self.node_capacity, Masks(self.nodes, policies.node_filters), policies.capacity_filters
        )
        for node in listed:
            self.put(node)

    def put(self, node: Node) -> None:
        slot = self.nodes.slot(node.name)
        had = self.nodes.allocatable.cells[:, slot].copy()
        self.nodes.put(node)
        has = self.nodes.allocatable.cells[:, slot].copy()
        has[: len(had)] -= had
        self.node_capacity.add_capacity(slot, has)

    def run(self, name: str, shape: Shape) -> None:
        self.node_capacity.take(
            self.nodes.slot(name), self.shapes.intern(msgspec.msgpack.encode(shape))
        )

    def count(self, shape: Shape, name: str, most: int) -> int:
        counts = self.fits.counts(self.shapes.intern(msgspec.msgpack.encode(shape)))
        return min(int(counts[self.nodes.slot(name)]), most)

    def reasons(self, shape: Shape) -> Counter[str]:
        return self.fits.reasons(self.shapes.intern(msgspec.msgpack.encode(shape)))


@given(nodes(), st.lists(SHAPES, min_size=1, max_size=3), st.data())
@settings(deadline=None, max_examples=100)
def test_columns_agree_with_a_naive_reading_of_every_rule(
    listed: list[Node], shapes: list[Shape], data: st.DataObject
) -> None:
    columns = Columns(listed)
    running: dict[str, list[Shape]] = {node.name: [] for node in listed}
    for _ in range(data.draw(st.integers(0, 4))):
        name = data.draw(st.sampled_from(sorted(running)))
        shape = data.draw(st.sampled_from(shapes))
        running[name].append(shape)
        columns.run(name, shape)
        # Asked in between, so that repaired answers are compared and not only fresh ones.
        for node in listed:
            assert columns.count(shapes[0], node.name, 12) == naive_count(
                shapes[0], node, running[node.name], 12
            )
    for shape in shapes:
        for node in listed:
            assert columns.count(shape, node.name, 12) == naive_count(
                shape, node, running[node.name], 12
            )


@given(nodes(), SHAPES, st.data())
@settings(deadline=None, max_examples=40)
def test_masks_are_repaired_when_a_node_changes(
    listed: list[Node], shape: Shape, data: st.DataObject
) -> None:
    columns = Columns(listed)
    for _ in range(3):
        for node in listed:
            assert columns.count(shape, node.name, 12) == naive_count(shape, node, [], 12)
        at = data.draw(st.integers(0, len(listed) - 1))
        changed = msgspec.structs.replace(
            data.draw(nodes())[0], uid=listed[at].uid, name=listed[at].name
        )
        listed[at] = changed
        columns.put(changed)


@given(nodes(), SHAPES)
@settings(deadline=None, max_examples=60)
def test_every_node_that_refuses_is_counted_with_a_reason(listed: list[Node], shape: Shape) -> None:
    columns = Columns(listed)
    refused = Counter(refusal(shape, node, []) for node in listed)
    found = columns.reasons(shape)
    assert found["node(s) were unschedulable"] == refused["unschedulable"]
    taints = sum(count for text, count in found.items() if "untolerated taint" in text)
    assert taints == refused["taint"] + refused["not ready"]
    assert found["node(s) didn't match Pod's node affinity/selector"] == refused["affinity"]
    lacking = [
        count for text, count in found.items() if text.startswith(("Insufficient", "Too many"))
    ]
    assert max(lacking, default=0) <= refused["resources"] <= sum(lacking)


def test_reasons_are_in_kube_schedulers_words() -> None:
    columns = Columns(
        [
            Node(uid="1", name="cordoned", resource_version=1, unschedulable=True),
            Node(
                uid="2",
                name="tainted",
                resource_version=1,
                taints=(Taint(key="team", value="blue", effect="NoSchedule"),),
            ),
            Node(uid="3", name="unready", resource_version=1, ready=False),
            Node(uid="4", name="other", resource_version=1),
            Node(
                uid="5",
                name="small",
                resource_version=1,
                labels=(("disk", "ssd"),),
                allocatable=(("cpu", 100), ("pods", 0)),
            ),
            Node(
                uid="6",
                name="taken",
                resource_version=1,
                labels=(("disk", "ssd"),),
                allocatable=(("cpu", 9000), ("pods", 9)),
            ),
        ]
    )
    columns.run("taken", Shape(host_ports=(HostPort(port=80),)))
    shape = Shape(
        requests=(("cpu", 1000), ("pods", 1)),
        node_selector=(("disk", "ssd"),),
        host_ports=(HostPort(port=80),),
    )
    assert columns.reasons(shape) == {
        "node(s) were unschedulable": 1,
        "node(s) had untolerated taint {team: blue}": 1,
        "node(s) had untolerated taint {node.kubernetes.io/not-ready: }": 1,
        "node(s) didn't match Pod's node affinity/selector": 1,
        "node(s) didn't have free ports for the requested pod ports": 1,
        "Insufficient cpu": 1,
        "Too many pods": 1,
    }


def test_a_request_beyond_what_the_columns_keep_fits_no_node_however_large() -> None:
    """Both are clamped, and must not pass for equal: 2**54 bytes are less than 2**60."""
    node = Node(
        uid="n",
        name="n0",
        resource_version=1,
        allocatable=(("memory", 2**54), ("pods", 110)),
    )
    columns = Columns([node])
    assert columns.count(Shape(requests=(("memory", 2**53), ("pods", 1))), "n0", 12) == 1
    assert columns.count(Shape(requests=(("memory", 2**60), ("pods", 1))), "n0", 12) == 0
