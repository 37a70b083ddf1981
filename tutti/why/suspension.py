"""Why no scheduler may place the pods of an object yet.

Kueue suspends objects, and gates plain pods, that it has not admitted.
"""

from collections.abc import Mapping
from typing import Any

from shared.dialects.kueue import ADMISSION_GATE, LOCAL_QUEUE
from shared.kube.objects import Pod


def suspended(spec: Any, status: Any, labels: Mapping[str, str]) -> str:
    """Why an object of any kind is suspended; "" if it is not.

    Kubeflow's kinds have `runPolicy.suspend`; a Volcano Job that was suspended has the phase
    Aborted; Kueue suspends workloads that it has not admitted.
    """
    spec = spec if isinstance(spec, dict) else {}
    policy = spec.get("runPolicy")
    policy = policy if isinstance(policy, dict) else {}
    for path, holder in (("spec.suspend", spec), ("spec.runPolicy.suspend", policy)):
        if holder.get("suspend") is True:
            queue = labels.get(LOCAL_QUEUE, "")
            by = f"; {not_admitted(queue)}" if queue else ""
            return f"{path} is true{by}"
    state = status.get("state") if isinstance(status, dict) else None
    phase = state.get("phase") if isinstance(state, dict) else None
    if phase in {"Aborted", "Aborting"}:
        return f"it is {phase}; `tutti job resume` starts it again"
    return ""


def awaited_queue_of_pod(pod: Pod) -> str:
    """Kueue's LocalQueue that has not admitted a pod; "" if it waits for none."""
    gated = any(gate.name == ADMISSION_GATE for gate in pod.spec.scheduling_gates)
    return pod.metadata.labels.get(LOCAL_QUEUE, "") if gated else ""


def not_admitted(queue: str) -> str:
    """What an object or a gang that waits for a LocalQueue waits for."""
    return f"Kueue's LocalQueue {queue} has not admitted it"
