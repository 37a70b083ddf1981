"""Rules between pods: affinity, anti-affinity and topology spread, required and preferred.

What a pod may do depends on which pods are where, by their labels. Everything works on counts:

* `state.inter_pod.terms` names every selector of a term or constraint once, as a *matcher*; the
  matchers that a pod satisfies are its *profile* (`state.inter_pod.label_index`), and a shape with
  a profile is an entry of its own, so that pods of one entry are interchangeable for all rules;
* `state.inter_pod.counts` counts pods per matcher (and per term that pods carry) and node, and sums
  them up per topology domain (`state.inter_pod.domains`, `spread_scopes`);
* `rules` turns these counts into masks over nodes, and into reasons; `scoring.inter_pod` into
  points;
* `placement.dependent_pods` places several equal pods of which each counts for the next.

None of this runs for shapes without terms in a cluster in which no term selects them.
"""
