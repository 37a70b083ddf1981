"""Prefers nodes with a high utilization after the pod: the weighted mean over the resources that
the pod requests.

It outweighs the spreading of `nodeorder` when its weight is larger. With equal weights the two
cancel out and the order of node names decides, as in Volcano.
"""

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.scoring.requested_shares import RequestedShares


def build(arguments: Arguments) -> Policy:
    """Arguments `binpack.weight`, `.cpu`, `.memory` (1 each), `.resources` (names of further
    resources), `.resources.<name>` (1).
    """
    strategies = {
        name: (True, weight)
        for name, weight in arguments.resource_weights("binpack").items()
        if weight
    }
    weight = arguments.integer("binpack.weight", 1)
    scores = (
        ((weight, RequestedShares("binpack", strategies.get)),) if weight and strategies else ()
    )
    return Policy(name="binpack", scores=scores)
