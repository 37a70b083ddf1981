"""Seeds that once broke a promise, by the name of what they found.

A seed reproduces its run only on the commit it was found on: what is kept here guards against the
same neighbourhood, the exact interleaving is a unit test beside the code that was mended.
"""

from typing import Final

SEEDS: Final[dict[str, int]] = {
    # A gang that was gone between two cycles stayed in the backlog, and its absent pods were
    # placed.
    "gone_between_two_cycles": 1043,
    # A deleted gang with an open backoff made the planner wake up without end.
    "pause_of_a_gang_that_is_gone": 1,
    # Two binders took each other's deliveries for lost, and requests grew without end.
    "heartbeats_of_a_shared_consumer": 2,
    # A hold that was filled was never closed in the log, when the planner died in between.
    "hold_filled_and_never_closed": 3013,
    # A group made again under its name while room was held for its member.
    "group_made_again_while_room_is_held": 2008,
    # Release and restart of the planner while the binding had no outcome yet.
    "release_beside_an_unanswered_decision": 2022,
    # A gang whose eviction was refused stayed out of the backlog, and was reported as being
    # evicted for ever.
    "eviction_refused_and_not_assessed_again": 153,
    # The checker took a refusal of pods that a restore of etcd had removed for one of their
    # successors.
    "refusal_of_pods_that_a_restore_removed": 213,
    # The checker counted a gang as scaled down before CLUSTER had the deletion of its member.
    "scaled_down_after_the_cycle_had_read": 330,
    # The checker did not count a pod of a Job of Kubernetes that succeeded while it was deleted.
    "surplus_beside_what_succeeded_while_deleted": 757,
}
