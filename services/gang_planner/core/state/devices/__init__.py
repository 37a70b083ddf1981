"""ResourceClaims of pods: whole devices of one class, chosen by the planner.

In: the tables of device classes, slices and claims (`reference_objects`), and every pod that takes
or gives room (`ledger`, which hangs on a `NodeCapacity`). Out: masks of nodes for the filter, and
the devices of each claim, for the decision.

`demand` says what a shape's claims need, `inventory` which devices there are and which of them are
in use. Devices of a driver are interchangeable here: what distinguishes them (attributes,
partitions, shared counters) is not judged, and a claim that asks for it is never served by guess.
"""
