"""A queue's rules for runs: each is that of the nearest queue that has it."""

from services.gang_planner.core.state.queue_rules import USUAL, QueueRules, rules_in
from shared.model.objects import RunLimits


def test_each_setting_is_that_of_the_nearest_queue_that_has_one() -> None:
    child = RunLimits(usual_s=60, notice_s=0)
    parent = RunLimits(usual_s=120, most_s=600, enforced=False)
    root = RunLimits(most_s=6_000, hold_after_s=30, enforced=True)
    assert rules_in([child, RunLimits(), parent, root]) == QueueRules(
        usual_ms=60_000, most_ms=600_000, notice_ms=0, enforced=False, hold_after_ms=30_000
    )


def test_queues_that_say_nothing_share_the_usual_rules() -> None:
    assert rules_in([RunLimits(), RunLimits()]) is USUAL
