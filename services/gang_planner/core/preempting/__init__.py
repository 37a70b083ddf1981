"""Preemption and reclaim: pods are evicted so that a whole gang can be placed where they were.

`table` keeps what is open, `following` says what becomes of it, `search` finds whom to evict,
`victims` who may be. The proof of a placement is the ordinary search (`placing`) on the ground as
it will be when the victims are gone.

Invariants, checked after every step where they can be seen (`invariants`):

* an eviction is decided only with a placement of the gang's quorum that the search found without
  the victims; what they leave is kept for it (rows with reason "preemptor") until its decision
  takes the room over, or the preemption ends with a reason;
* a gang has at most one open preemption, a pod is the victim of at most one;
* of each victim's gang all that is bound is evicted, or its quorum stays;
* nobody is owed room for a pod that was evicted by our own decision.
"""
