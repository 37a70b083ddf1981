"""PersistentVolumeClaims of pods: their bound, available and chosen volumes.

Input: the tables of volumes, claims, classes and CSI objects (`reference_objects`), and every pod
that takes or releases capacity (`ledger`, part of a `NodeCapacity`). Output: node masks for the
filters, and the volume chosen for each claim that waits for its first consumer, for the decision.

`demand` computes the needs of a shape's claims, `available_volumes` the volumes that satisfy a
claim and the nodes where one can be provisioned, `limits` the attach limits of nodes.
"""
