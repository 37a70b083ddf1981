"""Scores the nodes that fit by the scoring rules, with Volcano's default weights."""

from services.gang_planner.core.constraints.inter_pod.rules import Switches
from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.scoring import scoring_rules


def build(arguments: Arguments) -> Policy:
    """Arguments: the weight of each scoring rule (below), `podaffinity.weight` and
    `podtopologyspread.weight` (2 each); the weight 0 disables a rule.
    """
    weighted = [
        (arguments.integer(rule.weight_argument, rule.default_weight), rule.score)
        for rule in scoring_rules()
    ]
    return Policy(
        name="nodeorder",
        scores=tuple((weight, score) for weight, score in weighted if weight),
        pairwise=Switches(
            affinity_weight=arguments.integer("podaffinity.weight", 2),
            spread_weight=arguments.integer("podtopologyspread.weight", 2),
        ),
    )
