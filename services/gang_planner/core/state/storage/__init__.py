"""Claims of pods: which volumes they have, could have, and get by a decision.

In: the tables of volumes, claims, classes and CSI objects (`reference_objects`), and every pod that
takes or gives room (`ledger`, which hangs on a `NodeCapacity`). Out: masks of nodes for the
filters, and for each claim that waits for its first consumer the volume chosen, for the decision.

`demand` says what a shape's claims need, `available_volumes` which volumes serve a claim,
`provisioning` where one can be made, `limits` how many volumes a node still takes.
"""
