"""Small random clusters in which terms between pods matter, for Hypothesis."""

from hypothesis import strategies as st

from shared.model.objects import Shape, Taint
from shared.model.terms import PodAffinity, PodTerm, Requirement, Selector, SpreadConstraint

KEYS = st.sampled_from(["zone", "rack", "host"])
NAMESPACES = ("a", "b")
LABELS = st.dictionaries(st.sampled_from(["app", "tier"]), st.sampled_from(["x", "y"]), max_size=2)
NODE_LABELS = st.fixed_dictionaries(
    {}, optional={"zone": st.sampled_from(["1", "2"]), "rack": st.sampled_from(["1", "2", "3"])}
)
TAINTS = st.sampled_from([(), (), (Taint(key="k", effect="NoSchedule"),)])
REQUIREMENTS = st.one_of(
    st.builds(
        Requirement,
        key=st.sampled_from(["app", "tier"]),
        operator=st.sampled_from(["In", "In", "NotIn"]),
        values=st.sampled_from([("x",), ("y",), ("x", "y")]),
    ),
    st.builds(
        Requirement,
        key=st.sampled_from(["app", "tier"]),
        operator=st.sampled_from(["Exists", "DoesNotExist"]),
    ),
)
SELECTORS = st.none() | st.builds(
    Selector, requirements=st.lists(REQUIREMENTS, max_size=2).map(tuple)
)
NAMESPACE_SELECTORS = st.none() | st.builds(
    Selector,
    requirements=st.lists(
        st.builds(
            Requirement, key=st.just("team"), operator=st.just("In"), values=st.just(("red",))
        ),
        max_size=1,
    ).map(tuple),
)


def terms(weight: int = 0) -> st.SearchStrategy[PodTerm]:
    """A term about pods in either namespace."""
    return st.builds(
        PodTerm,
        selector=SELECTORS,
        namespaces=st.sampled_from([("a",), ("a",), ("b",), ("a", "b"), ()]),
        namespace_selector=NAMESPACE_SELECTORS,
        topology_key=KEYS,
        weight=st.just(weight),
    )


def several(one: st.SearchStrategy[PodTerm]) -> st.SearchStrategy[tuple[PodTerm, ...]]:
    """Up to two terms, mostly none."""
    return st.just(()) | st.lists(one, max_size=2).map(tuple)


AFFINITIES = st.none() | st.builds(
    PodAffinity,
    affinity=several(terms()),
    anti_affinity=several(terms()),
    preferred=several(terms(10)),
    preferred_anti=several(terms(20)),
)
CONSTRAINTS = st.builds(
    SpreadConstraint,
    max_skew=st.integers(1, 2),
    topology_key=KEYS,
    when_unsatisfiable=st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
    selector=SELECTORS,
    min_domains=st.integers(1, 3),
    node_affinity_policy=st.sampled_from(["Honor", "Ignore"]),
    node_taints_policy=st.sampled_from(["Honor", "Ignore"]),
)


def shapes(namespace: str) -> st.SearchStrategy[Shape]:
    """A pod's shape with terms, or without."""
    return st.builds(
        Shape,
        requests=st.just((("pods", 1),)),
        node_selector=st.sampled_from([(), (), (("zone", "1"),)]),
        pod_affinity=AFFINITIES,
        spread=st.just(()) | st.lists(CONSTRAINTS, max_size=2).map(tuple),
        namespace=st.just(namespace),
    )
