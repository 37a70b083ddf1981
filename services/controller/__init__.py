"""The controllers: they write statuses and objects; all scheduling decisions are the planner's.

Consumes: VERDICTS, by one durable consumer per purpose: the newest verdict of each gang (status),
the newest one that wants a PodGroup (podgroup), the newest one with ProvisioningRequests to write
(status).
Emits: nothing on the bus.
Owns: a memory of what is written; the stored objects are the truth.
Rights in Kubernetes: `tutti.rights.table` has those of each controller, with their reasons.

`--controllers=status` writes statuses, conditions and Events of groups and waiting pods, a pure
function of one verdict (`core.statuses`).
  API writes of a gang that is bound within a second: one patch of its group (two for the dialects
  whose status is a subresource), one Event, and for a group that waits for Inqueue one patch more;
  per pod a Scheduled event as far as `--pod-events-per-s` allows. A gang that waits costs one
  patch, one Event, and one condition per pod, again when its reason changes. A release, a hold, and
  a gang that is degraded or partly bound cost one patch and one Event each.

  It also creates and deletes the ProvisioningRequests of gangs whose queue asks for them, with
  their PodTemplates (`core.provisioning`): one request and one template per pod shape, for each
  attempt.

`--controllers=podgroup` creates the PodGroup of pods that name our scheduler and no group, as
Volcano's controller does (`core.workloads`), and patches its name onto the pods: one PodGroup per
owner, one patch per pod.
`--controllers=workload` updates those PodGroups by their workloads (`core.workloads`), and deletes
the group of one that was scaled to zero with its last pod.

`--controllers=queue` opens and closes queues by Commands and with their parents, and is the only
writer of their status (`core.queues`). It reads their allocated resources from the planner's
ledger.
  API writes: at most two per queue that opens or closes, and an Event; one patch a second while its
  allocated resources change.
`--controllers=job` runs Jobs of batch.volcano.sh (`core.jobs`): their group, pods, claims, objects
of plugins, policies, restarts and Commands.
  API writes: one for each phase of a job, each object and each pod; counts at most once a second.
`--controllers=jobflow` creates the Jobs of JobFlows (`core.jobflows`), `cronjob` those of CronJobs
(`core.cronjobs`), and `gc` deletes finished Jobs after their ttl.
`--controllers=hypernode` counts the nodes of HyperNodes and creates those that node labels describe
(`core.hypernodes`).

Each replica with a reconciler keeps a Lease, by which replicas divide keys.

Invariants:
* A verdict is acknowledged when all writes that it requires are done, found done, or definitely
  refused.
* The newest verdict of a gang is written last: a replaced verdict is never written, and after each
  write of a group the stream is read for a newer one, which another replica may have written
  before.
* Writes have a limited rate (`--writes-per-s`), since bindings have precedence.
"""
