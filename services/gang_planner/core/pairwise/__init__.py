"""Rules between pods: affinity, anti-affinity and topology spread, required and preferred.

What a pod may do depends on which pods are where, by their labels. Everything here works on counts:

* `terms` names every selector that a term or constraint asks for, once, as a *matcher*; the
  matchers that a pod satisfies are its *profile* (`labelling`), and a shape with a profile is an
  entry of its own, so that pods of one entry are interchangeable for all rules;
* `counts`, on the ground, counts pods per matcher (and per term that pods carry) and node, and sums
  them up per topology domain (`domains`, `scopes`);
* `rules` turns these counts into masks over nodes, and into reasons; `preferring` into points;
* `stepping` places several equal pods of which each counts for the next.

Shapes without terms, in a cluster in which no term selects them, come through none of this.
"""
