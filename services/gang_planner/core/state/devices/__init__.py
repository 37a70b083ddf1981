"""ResourceClaims of pods: whole devices that CEL selectors match, chosen by the planner.

Input: the tables of device classes, slices and claims (`reference_objects`), and every pod that
takes or releases capacity (`ledger`, part of a `NodeCapacity`). Output: node masks for the filter,
and the devices of each claim for the decision.

`demand` computes the needs of a shape's claims, `selection` the devices that each of them may get,
`inventory` lists devices and their use. Partitions and shared counters are not supported, and a
claim that requests them is refused.
"""
