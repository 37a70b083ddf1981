"""Fairness over time: of two queues, and of two users in a queue, the one that has used less of the
cluster goes first. Past use is the dominant share that was held, and an instant counts half as much
as one that is a half-life later; for queues it is divided by the weight. A newcomer begins with the
mean of those that wait or hold something then, so it neither gains nor loses by being new.

It is charged by the exact times in the log. What is held now counts as if it were held for another
eighth of a half-life. Plugins that are named before it, such as `priority`, go first.
"""

from collections.abc import Sequence
from typing import Final

from services.gang_planner.core.framework.arguments import Arguments
from services.gang_planner.core.framework.policy import Policy
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.past_use import Account, PastUse, UseRules
from services.gang_planner.core.state.queues import QueueEntry
from shared.kinds.durations import duration_ms

_HALF_LIFE: Final = "half-life"
_USER: Final = "user"
_NAMESPACE: Final = "namespace"
_LABEL: Final = "label:"
#: A week: users see the effect of a day within a day, and a month is nearly forgotten.
_USUAL: Final = "168h"
_LEAST_MS: Final = 1_000
_MOST_MS: Final = 400 * 86_400_000
#: Queues are compared down to this level.
_LEVELS: Final = 8


def build(arguments: Arguments) -> Policy:
    """Arguments `half-life` (a duration; `168h`) and `user`: `namespace` (the default), or
    `label:<key>` for a label of the gang's pods.
    """
    text = arguments.text(_HALF_LIFE) or _USUAL
    half_life_ms = duration_ms(text)
    if half_life_ms is None or not _LEAST_MS <= half_life_ms <= _MOST_MS:
        rule = f"must be a duration such as 168h, from 1s to 9600h, not {text!r}"
        raise arguments.wrong(_HALF_LIFE, rule)
    user = arguments.text(_USER) or _NAMESPACE
    label = user.removeprefix(_LABEL) if user.startswith(_LABEL) else None
    if user != _NAMESPACE and not label:
        raise arguments.wrong(_USER, f"must be namespace or label:<key>, not {user!r}")
    return Policy(
        name="past-use",
        # The place of the user's rank.
        group_key=lambda _gang, _state: (0,),
        users_rank=lambda gang, state: _users_rank(state.past_use, gang.account, state.nodes),
        queue_key=lambda queue, totals, state: _queue_key(state.past_use, queue, totals),
        use_rules=UseRules(half_life_ms, label),
    )


def _users_rank(use: PastUse, account: Account | None, nodes: NodeTable) -> int:
    return use.user_rank(account, nodes.totals()) if account is not None else 0


def _queue_key(use: PastUse, queue: QueueEntry, totals: Sequence[int]) -> tuple[int, ...]:
    """Past use for each unit of weight of the queues above it, from the top, and of itself."""
    levels: list[int] = []
    for entry in queue.chain[::-1][:_LEVELS]:
        account = use.accounts.get((entry.name, None))
        past = use.past(account) if account is not None else 0
        levels.append(use.rank(past, entry.used, totals) // entry.weight)
    return (*levels, *([-1] * (_LEVELS - len(levels))))
