"""The planner's pure core: records and instants in, decisions, notes and verdicts out.

`planner.Planner` is its interface. Each package may import those listed before it, and no others
(`.importlinter`); no module imports itself through others.

* `state`: tables of the cluster, gangs, queues, reservations and decisions in flight;
* `constraints`, `scoring`: which nodes a shape may use, how often it fits, and where best;
* `framework`, `policies`, `configuration`: what a policy may contribute; one file per policy; the
  file that selects them;
* `placement`: from a gang to nodes for its members, all or nothing;
* `foresight`: what becomes free, when, and for which waiting gangs it is kept;
* `transitions`: the life of a gang, as one table of states and events;
* `cycle_context`: what one cycle has decided so far;
* `queueing`: needs, fair shares, turns;
* `allocation`: from a gang in the backlog to its decision, in batches and with extras;
* `preemption`: the victims that make room for a gang, and the actions that evict them;
* `lifecycle`: what a gang waits for; repairs, releases, backoff, holds, deadlines;
* `actions`: enqueue, allocate, backfill and reserve, which a cycle runs;
* `ingest`: applies records of CLUSTER and DECISIONS to the state;
* `verdicts`: what users read of each gang;
* `queries`: questions that change nothing, answered on copies;
* `cycle`: the phases of a cycle.

The core has no clock, no randomness, no I/O and no logging: the same inputs give the same bytes.
"""
