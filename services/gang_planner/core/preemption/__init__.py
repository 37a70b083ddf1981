"""Preemption and reclaim: pods are evicted so that a whole gang can be placed where they were.

`state.preemptions` has the open ones, `tracking` follows them to their ends, `candidates` lists the
pods that may be evicted, `search` selects victims. The proof of a placement is the ordinary search
(`placement.gang_placement`) on the capacity that nodes have once the victims are gone.

Invariants, checked after every step where they can be seen (`invariants`):

* an eviction is decided only with a placement of the gang's quorum that the search found without
  the victims; their capacity is reserved for it (rows with reason "preemptor") until its decision
  takes it over, or the preemption ends with a reason;
* a gang has at most one open preemption, a pod is the victim of at most one;
* all bound members of a victim's gang are evicted, or its quorum stays;
* no gang gets a replacement reservation for a pod that the planner itself evicted.
"""
