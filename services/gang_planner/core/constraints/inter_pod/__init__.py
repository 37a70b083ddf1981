"""Inter-pod rules: affinity, anti-affinity and topology spread, required and preferred.

These rules depend on the labels and nodes of other pods. They are evaluated on counts:

* `state.inter_pod.terms` registers every selector of a term or constraint once, as a *matcher*. The
  matchers that a pod satisfies are its *profile* (`state.inter_pod.label_index`). Pods with
  different profiles have different shape entries, so pods of one entry are interchangeable.
* `state.inter_pod.counts` counts pods per node for each matcher, and for each term that pods carry,
  and sums the counts per topology domain (`state.inter_pod.domains`, `rules.Scopes`).
* `rules` converts the counts to node masks and reasons, `scoring.inter_pod` to points.
* `placement.members` places several equal pods if each affects the next.

None of this runs for shapes without terms that no other pod's term selects.
"""
