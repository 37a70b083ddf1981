"""The decisions of the Job controller: a pure function of a Job, its pods, its PodGroup and the
time.

    answers:  events of pods, tasks and the group ──policies──▶ answers (an action each);
              the one to give now, and timeouts of the remaining ones
    states:   phase and action ──tables──▶ a kill, or sync
    succeeded_pods: those that are gone and are not run again
    planning: one `step`: the objects to create, change and delete, and the status to write

A step leaves at most one phase, so that each phase is written and can be observed. If the
controller is killed between two writes of a step, the next step is derived from the objects alone:
* A phase that deletes pods is written before the first deletion, with a higher version. Pods have
  the version under which they were created: older ones are to be deleted, and their end is no
  event.
* Pods that are deleted without a new version (RestartTask, surplus after scaling down) are marked
  first (`volcano.sh/controller-out-of-sync`).
* `state.reason` has the action that led to Restarting and determines the pods to delete.
"""
