"""Strategies that draw small clusters and pods as the JSON that the API server would give.

Few distinct values, so that terms match, amounts collide and domains are shared. What is drawn is
what could be stored: requests never above limits, host ports with hostNetwork copied, selectors
with an operator.
"""

from typing import Any, Final

from hypothesis import strategies as st

from tests.oracle.scheduler import Cluster

Json = dict[str, Any]
ZONE: Final = "topology.kubernetes.io/zone"
HOSTNAME: Final = "kubernetes.io/hostname"
_CPU: Final = ("100m", "0.5", "1", "1500m", "2", "0")
_MEMORY: Final = ("64Mi", "512Mi", "1Gi", "1G", "1500M", "2Gi", "0")
_GPU: Final = "example.com/gpu"
_KEYS: Final[tuple[str, ...]] = ("disk", "gen", ZONE)
_VALUES: Final = ("ssd", "hdd", "9", "10", "a", "b", "")
_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_TAINTS: Final = ("gpu", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready")


def _sometimes(strategy: st.SearchStrategy[Any], otherwise: Any) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(otherwise), strategy)


def _resources(*, most: int) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {},
        optional={
            "cpu": st.sampled_from(_CPU),
            "memory": st.sampled_from(_MEMORY),
            "ephemeral-storage": st.sampled_from(("1Gi", "3Gi")),
            _GPU: st.integers(0, most).map(str),
            "hugepages-2Mi": st.sampled_from(("2Mi", "64Mi")),
        },
    )


_TAINT: Final = st.fixed_dictionaries(
    {"key": st.sampled_from(_TAINTS), "effect": st.sampled_from(_EFFECTS)},
    optional={"value": st.sampled_from(("yes", "no"))},
)


@st.composite
def node(draw: st.DrawFn, index: int) -> Json:
    """A node of two zones at most."""
    name = f"n{index}"
    labels: dict[str, str] = draw(
        st.dictionaries(st.sampled_from(_KEYS[:2]), st.sampled_from(_VALUES), max_size=2)
    )
    zone = draw(st.sampled_from(("a", "b", "b", None)))
    if zone is not None:
        labels[ZONE] = zone
    allocatable = {
        "cpu": draw(st.sampled_from(("1", "2", "3500m", "4"))),
        "memory": draw(st.sampled_from(("1Gi", "2Gi", "4G"))),
        "pods": draw(st.sampled_from(("1", "2", "3", "110"))),
        "ephemeral-storage": "4Gi",
        **draw(_sometimes(st.just({_GPU: "2"}), {})),
        **draw(_sometimes(st.just({"hugepages-2Mi": "64Mi"}), {})),
    }
    return {
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "resourceVersion": "1",
            "labels": {**labels, HOSTNAME: name},
        },
        "spec": {
            "unschedulable": draw(st.sampled_from((False, False, False, True))),
            "taints": draw(_sometimes(st.lists(_TAINT, max_size=2), [])),
        },
        "status": {"allocatable": allocatable, "capacity": allocatable},
    }


@st.composite
def containers(draw: st.DrawFn, prefix: str, *, most: int, init: bool) -> list[Json]:
    """Containers with requests; init containers are sidecars at times."""
    found: list[Json] = []
    for index in range(draw(st.integers(0 if init else 1, most))):
        requests = draw(_resources(most=2))
        limits = {key: requests[key] for key in (_GPU, "hugepages-2Mi") if key in requests}
        one: Json = {
            "name": f"{prefix}{index}",
            "image": "i",
            "resources": {"requests": requests, "limits": limits},
        }
        ports = draw(_sometimes(st.lists(_PORT, max_size=2), []))
        if ports:
            one["ports"] = ports
        if init and draw(st.booleans()):
            one["restartPolicy"] = "Always"
        found.append(one)
    return found


_PORT: Final = st.fixed_dictionaries(
    {
        "containerPort": st.just(80),
        "hostPort": st.sampled_from((80, 81)),
        "protocol": st.sampled_from(("TCP", "UDP")),
    },
    optional={"hostIP": st.sampled_from(("127.0.0.1", "0.0.0.0"))},
)

_TOLERATION: Final = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(_TAINTS),
        "operator": st.sampled_from(("Exists", "Equal")),
        "value": st.sampled_from(("yes", "no")),
        "effect": st.sampled_from(_EFFECTS),
    },
).map(lambda one: {**one, "operator": "Exists"} if "key" not in one else one)


@st.composite
def _node_requirement(draw: st.DrawFn) -> Json:
    operator = draw(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")))
    key = draw(st.sampled_from(_KEYS))
    if operator in {"Exists", "DoesNotExist"}:
        return {"key": key, "operator": operator}
    if operator in {"Gt", "Lt"}:
        return {"key": key, "operator": operator, "values": [draw(st.sampled_from(("9", "10")))]}
    values = draw(st.lists(st.sampled_from(_VALUES), min_size=1, max_size=2, unique=True))
    return {"key": key, "operator": operator, "values": values}


_FIELD: Final = st.builds(
    lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
    st.sampled_from(("In", "NotIn")),
    st.sampled_from(("n0", "n1", "n9")),
)

_NODE_TERM: Final = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(_node_requirement(), max_size=2),
        "matchFields": st.lists(_FIELD, max_size=1),
    },
)


@st.composite
def pod(draw: st.DrawFn, name: str, *, namespace: str = "team") -> Json:
    """A pod that no scheduler has seen."""
    spec: Json = {
        "containers": draw(containers("c", most=2, init=False)),
        "initContainers": draw(_sometimes(containers("i", most=2, init=True), [])),
        "tolerations": draw(_sometimes(st.lists(_TOLERATION, max_size=2), [])),
        "nodeSelector": draw(
            _sometimes(
                st.dictionaries(st.sampled_from(_KEYS), st.sampled_from(_VALUES), max_size=1), {}
            )
        ),
        "overhead": draw(_sometimes(st.just({"cpu": "250m", "memory": "64Mi"}), {})),
    }
    terms = draw(_sometimes(st.lists(_NODE_TERM, min_size=1, max_size=2), []))
    if terms:
        spec["affinity"] = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }
        }
    labels = draw(
        st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from(("x", "y")), max_size=2)
    )
    return {
        "metadata": {
            "name": name,
            "uid": f"pod-{name}",
            "namespace": namespace,
            "resourceVersion": "1",
            "labels": labels,
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def on(node_name: str, one: Json) -> Json:
    """The pod as it runs on a node."""
    spec = {**one["spec"], "nodeName": node_name, "schedulerName": "default-scheduler"}
    return {**one, "spec": spec, "status": {"phase": "Running"}}


@st.composite
def clusters(draw: st.DrawFn, *, others: int = 5) -> Cluster:
    """Nodes, and pods on them."""
    nodes = [draw(node(index)) for index in range(draw(st.integers(1, 4)))]
    names = [one["metadata"]["name"] for one in nodes]
    pods = [
        on(draw(st.sampled_from(names)), draw(pod(f"other-{index}")))
        for index in range(draw(st.integers(0, others)))
    ]
    return {"nodes": nodes, "pods": pods, "namespaces": []}


@st.composite
def roomy_clusters(draw: st.DrawFn) -> Cluster:
    """Nodes that take 110 pods each, without pods."""
    drawn = draw(clusters(others=0))
    for one in drawn["nodes"]:
        one["status"]["allocatable"]["pods"] = "110"
    return drawn
