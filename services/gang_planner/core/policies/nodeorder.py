"""Preferences among nodes that fit: a thin table over `scoring`, with Volcano's weights."""

from services.gang_planner.core.constraints.inter_pod.switches import Switches
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.scoring import (
    NodeScore,
    balanced,
    image_locality,
    least_requested,
    most_requested,
    node_preference,
    taint_preference,
)

_SCORES: tuple[tuple[str, int, NodeScore], ...] = (
    ("leastrequested.weight", 1, least_requested.SCORE),
    ("mostrequested.weight", 0, most_requested.SCORE),
    ("balancedresource.weight", 1, balanced.SCORE),
    ("tainttoleration.weight", 3, taint_preference.SCORE),
    ("nodeaffinity.weight", 2, node_preference.SCORE),
    ("imagelocality.weight", 1, image_locality.SCORE),
)


def build(arguments: Arguments) -> Policy:
    """Arguments: the weights in `_SCORES`, `podaffinity.weight` and `podtopologyspread.weight` (2
    each); 0 leaves a preference out.
    """
    pairwise = Switches(
        affinity_weight=arguments.integer("podaffinity.weight", 2),
        spread_weight=arguments.integer("podtopologyspread.weight", 2),
    )
    weighted = [(arguments.integer(name, default), score) for name, default, score in _SCORES]
    return Policy(
        name="nodeorder",
        scores=tuple((weight, score) for weight, score in weighted if weight),
        pairwise=pairwise,
    )
