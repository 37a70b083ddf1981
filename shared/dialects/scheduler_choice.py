"""The scheduler name that a pod of a namespace gets which has opted in (ADR 0067)."""

from typing import Final

from shared.contracts.annotations import GANG, SCHEDULE
from shared.dialects.discovery import OWN_SCHEDULER
from shared.dialects.protocol import DEFAULT_SCHEDULER, Dialect
from shared.dialects.workload_sizes import ALL

#: The label that a namespace opts in with.
NAMESPACE_LABELS: Final = {SCHEDULE: "true"}
#: Labels of a namespace that opts in also for pods of operators' objects (ADR 0067).
NAMESPACE_LABELS_FOR_OWNED: Final = {**NAMESPACE_LABELS, GANG: ALL}
#: Namespaces whose pods are never taken, whatever their labels.
EXCLUDED_NAMESPACES: Final = ("kube-system",)


def gives_way(scheduler_name: str, dialect: Dialect) -> bool:
    """Whether a pod whose gang this dialect reads may get another scheduler name than its own."""
    return scheduler_name == DEFAULT_SCHEDULER or any(
        scheduler_name == scheduler.name for scheduler in dialect.schedulers
    )


def name_for_pods(served: tuple[str, ...]) -> str:
    """The name that pods get: Tutti's own if it is served, else the first that is."""
    return OWN_SCHEDULER if OWN_SCHEDULER in served else served[0]
