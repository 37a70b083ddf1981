"""The planner's pure core: records and instants in, decisions, notes and verdicts out.

The door is `planner.Planner`. Below it, in the order in which a cycle runs through them:

* `picture` applies records to the `tables`; claims and terms about other pods have tables of their
  own in `storage`, `devices` and `pairwise`, HyperNodes in `topology`;
* `telling.assessing` says of each changed gang what it waits for;
* `actions` take gangs in the order of `queueing` and the `policies` that `configuring` has read,
  and place them by `placement`, with `filters` and `scores`, or make room by `preempting`;
* `decisions` holds what was decided until it is answered, `recovery` mends what went wrong;
* `telling.verdicts` say what became of each gang; `questions` are answered beside all this.

No clock, no randomness, no I/O, no logging: the same inputs give the same bytes.
"""
