"""Admits groups whose pods exist only after it: phase Pending -> Inqueue.

In: gangs refused as NotAdmitted. A gang is admitted when its queue's ceiling has room for its
    minimum beside what is
held and what was promised to admitted gangs that have not started; without a declared minimum at
once. Missing room on nodes only orders gangs, it admits nobody later: operators wait for this phase
before they create pods.
"""

from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.gangs import Gang


def run(work: CycleWork) -> None:
    """Admit what can be, in order; a group that cannot does not block the next one."""
    state = work.state
    policies = work.session.policies
    totals = work.session.totals
    waiting = [gang for gang in state.gangs.unadmitted.values() if gang.refused == "NotAdmitted"]
    if not waiting:
        return
    waiting.sort(key=lambda gang: (policies.queue_order(gang.queue, totals), policies.order(gang)))
    for gang in waiting:
        _admit(work, gang)


def _admit(work: CycleWork, gang: Gang) -> None:
    queue = gang.queue
    minimum = queue.amounts(gang.group.min_resources or ()) if gang.group is not None else {}
    if not work.admit_all and queue.excess(minimum, promised=True):
        return
    queue.promise(gang.gang_id, minimum)
    gang.admitted = True
    work.state.gangs.unadmitted.pop(gang.key, None)
    work.state.gangs.touch(gang)
