"""What the Job controller decides: a pure function of a Job, its pods, its PodGroup and the time.

    requests: what happened (events, commands) ──policies──▶ an action
    states:   phase and action ──tables──▶ a kill, or sync
    planning: one step: which objects to make, change, delete, and the status to write

A step is small: at most one phase is left in it, so that each phase is written and seen. Killed
between any two writes of a step, the next one derives what is left from the objects alone:
* A phase that kills is written before the first pod is killed, with a higher version. Pods carry
  the version they were made under: older ones are to go, and what becomes of them is no event.
* Pods that are killed without a new version (RestartTask, surplus of a smaller scale) are marked
  before (`volcano.sh/controller-out-of-sync`).
* `state.reason` holds the action that led to Restarting: which pods it kills.
"""
