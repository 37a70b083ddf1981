"""Strategies for rules between pods: affinity, anti-affinity and spread, in two namespaces.

Fields are as the API server stores them: a term names namespaces, or has a selector of them, or
neither; matchLabelKeys are merged into the selector by the API server, so none are drawn.
"""

from typing import Any, Final

from hypothesis import strategies as st

from tests.oracle import clusters
from tests.oracle.scheduler import Cluster

Json = dict[str, Any]
NAMESPACES: Final[list[Json]] = [
    {
        "metadata": {
            "name": name,
            "uid": f"namespace-{name}",
            "resourceVersion": "1",
            "labels": labels,
        }
    }
    for name, labels in (("team", {"kind": "dev"}), ("other", {"kind": "prod"}))
]
_KEYS: Final = (clusters.ZONE, clusters.HOSTNAME, "disk")


@st.composite
def selector(draw: st.DrawFn) -> Json:
    """A label selector over the labels that pods have."""
    found: Json = {}
    if draw(st.booleans()):
        found["matchLabels"] = {
            draw(st.sampled_from(("app", "tier"))): draw(st.sampled_from(("x", "y")))
        }
    if draw(st.booleans()):
        operator = draw(st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")))
        one: Json = {"key": draw(st.sampled_from(("app", "tier"))), "operator": operator}
        if operator in {"In", "NotIn"}:
            one["values"] = [draw(st.sampled_from(("x", "y")))]
        found["matchExpressions"] = [one]
    return found


@st.composite
def _term(draw: st.DrawFn) -> Json:
    found: Json = {"topologyKey": draw(st.sampled_from(_KEYS))}
    if draw(st.integers(0, 9)):
        found["labelSelector"] = draw(selector())
    said = draw(st.sampled_from(("", "", "namespaces", "namespaceSelector")))
    if said == "namespaces":
        found[said] = [draw(st.sampled_from(("team", "other")))]
    elif said:
        kind = draw(st.sampled_from(("dev", "prod", "none")))
        found[said] = draw(st.sampled_from(({}, {"matchLabels": {"kind": kind}})))
    return found


@st.composite
def _constraint(draw: st.DrawFn) -> Json:
    found: Json = {
        "maxSkew": draw(st.integers(1, 2)),
        "topologyKey": draw(st.sampled_from(_KEYS)),
        "whenUnsatisfiable": draw(
            st.sampled_from(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"))
        ),
        "labelSelector": draw(selector()),
    }
    if found["whenUnsatisfiable"] == "DoNotSchedule" and draw(st.booleans()):
        found["minDomains"] = draw(st.integers(1, 3))
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = draw(st.sampled_from((None, "Honor", "Ignore")))
        if policy is not None:
            found[name] = policy
    return found


@st.composite
def pod(draw: st.DrawFn, name: str) -> Json:
    """A small pod with rules about others."""
    found = draw(clusters.pod(name, namespace=draw(st.sampled_from(("team", "team", "other")))))
    spec = found["spec"]
    for container in (*spec["containers"], *spec["initContainers"]):
        # Rules between pods are what is judged: little else is in the way.
        container["resources"] = {"requests": {"cpu": "10m"}}
        container.pop("ports", None)
    affinity = dict(spec.get("affinity", {}))
    for field in ("podAffinity", "podAntiAffinity"):
        terms = draw(st.one_of(st.just([]), st.lists(_term(), min_size=1, max_size=2)))
        if terms:
            affinity[field] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    if affinity:
        spec["affinity"] = affinity
    constraints = draw(
        st.one_of(
            st.just([]),
            st.lists(
                _constraint(),
                min_size=1,
                max_size=2,
                unique_by=lambda one: (one["topologyKey"], one["whenUnsatisfiable"]),
            ),
        )
    )
    if constraints:
        spec["topologySpreadConstraints"] = constraints
    return found


@st.composite
def cluster(draw: st.DrawFn) -> Cluster:
    """Nodes that take 110 pods, and pods on them that have rules of their own."""
    drawn = draw(clusters.roomy_clusters())
    names = [one["metadata"]["name"] for one in drawn["nodes"]]
    pods = [
        clusters.on(draw(st.sampled_from(names)), draw(pod(f"other-{index}")))
        for index in range(draw(st.integers(0, 5)))
    ]
    return {"nodes": drawn["nodes"], "pods": pods, "namespaces": NAMESPACES}
