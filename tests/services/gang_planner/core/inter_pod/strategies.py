"""Small random clusters in which terms between pods matter, for Hypothesis."""

from hypothesis import strategies as st

from shared.model.objects import Shape, Taint
from shared.model.terms import PodAffinity, PodTerm, Requirement, Selector, SpreadConstraint

KEYS = st.sampled_from(["zone", "rack", "host"])
NAMESPACES = ("a", "b")
#: Mostly one label, so that terms meet pods.
LABELS = st.sampled_from(
    [{"app": "x"}, {"app": "x"}, {"app": "x", "tier": "y"}, {"app": "y"}, {"tier": "x"}, {}]
)
NODE_LABELS = st.fixed_dictionaries(
    {"zone": st.sampled_from(["1", "2", "3"])},
    optional={"rack": st.sampled_from(["1", "2", "3"])},
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
APP_X = Selector(requirements=(Requirement(key="app", operator="In", values=("x",)),))
SELECTORS = st.sampled_from([APP_X, APP_X, APP_X, APP_X, None, Selector()]) | st.builds(
    Selector, requirements=st.lists(REQUIREMENTS, min_size=1, max_size=2).map(tuple)
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
        namespaces=st.sampled_from([("a", "b"), ("a", "b"), ("a",), ("b",), ()]),
        namespace_selector=NAMESPACE_SELECTORS,
        topology_key=KEYS,
        weight=st.just(weight),
    )


def several(one: st.SearchStrategy[PodTerm]) -> st.SearchStrategy[tuple[PodTerm, ...]]:
    """One or two terms."""
    return st.lists(one, min_size=1, max_size=2).map(tuple)


NONE: st.SearchStrategy[tuple[PodTerm, ...]] = st.just(())
AFFINITIES = st.one_of(
    st.builds(PodAffinity, affinity=several(terms())),
    st.builds(PodAffinity, anti_affinity=several(terms())),
    st.builds(PodAffinity, affinity=several(terms()), anti_affinity=several(terms())),
    st.builds(
        PodAffinity,
        anti_affinity=NONE | several(terms()),
        preferred=several(terms(10)),
        preferred_anti=NONE | several(terms(20)),
    ),
)
CONSTRAINTS = st.builds(
    SpreadConstraint,
    max_skew=st.integers(1, 2),
    topology_key=KEYS,
    when_unsatisfiable=st.sampled_from(["DoNotSchedule", "DoNotSchedule", "ScheduleAnyway"]),
    selector=SELECTORS,
    min_domains=st.sampled_from([1, 1, 3, 4]),
    node_affinity_policy=st.sampled_from(["Honor", "Ignore"]),
    node_taints_policy=st.sampled_from(["Honor", "Ignore"]),
)
SPREADS = st.lists(CONSTRAINTS, min_size=1, max_size=2).map(tuple)


def shapes(namespace: str, *, terms_at_least: int = 0) -> st.SearchStrategy[Shape]:
    """A pod's shape, with terms or without."""
    requests = (("pods", 1),)
    selector = st.sampled_from([(), (), (("zone", "1"),)])
    kinds = [
        st.builds(
            Shape,
            requests=st.just(requests),
            node_selector=selector,
            pod_affinity=AFFINITIES,
            namespace=st.just(namespace),
        ),
        st.builds(
            Shape,
            requests=st.just(requests),
            node_selector=selector,
            spread=SPREADS,
            namespace=st.just(namespace),
        ),
        st.builds(
            Shape,
            requests=st.just(requests),
            node_selector=selector,
            pod_affinity=AFFINITIES,
            spread=SPREADS,
            namespace=st.just(namespace),
        ),
    ]
    if not terms_at_least:
        kinds.append(st.just(Shape(requests=requests, namespace=namespace)))
    return st.one_of(kinds)
