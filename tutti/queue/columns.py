"""The tables of Queues, with PodGroups counted by phase."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from tutti.api.objects import Object, field, name_of, number, text
from tutti.api.output import Column, Layout

PHASES: Final = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
#: `vqueues` has no other columns.
_SLURM_PHASES: Final = PHASES[:4]
_DEFAULT: Final = "default"


def count(groups: Iterable[Object]) -> Counter[tuple[str, str]]:
    """PodGroups by queue and phase. A group without a phase counts as Pending."""
    return Counter(
        (text(each, "spec.queue") or _DEFAULT, text(each, "status.phase") or "Pending")
        for each in groups
    )


def layout(counts: Mapping[tuple[str, str], int], *, slurm: bool = False) -> Layout:
    """The table of `queue list` and `queue get`, or that of `vqueues`."""
    phases = _SLURM_PHASES if slurm else PHASES
    state = Column(
        title="State", width=8, value=lambda one: text(one, "status.state"), coloured=True
    )
    parent = Column(title="Parent", width=8, value=lambda one: text(one, "spec.parent"))
    return Layout(
        columns=(
            Column(title="Name", width=25, value=name_of),
            Column(title="Weight", width=8, value=lambda one: number(one, "spec.weight")),
            state,
            *(() if slurm else (parent,)),
            *(Column(title=phase, width=8, value=_groups(counts, phase)) for phase in phases),
            Column(title="Deserved", wide=True, value=_amounts("spec.deserved")),
            Column(title="Capability", wide=True, value=_amounts("spec.capability")),
            Column(title="Allocated", wide=True, value=_amounts("status.allocated")),
        )
    )


def _groups(counts: Mapping[tuple[str, str], int], phase: str) -> Callable[[Object], int]:
    return lambda queue: counts.get((name_of(queue), phase), 0)


def _amounts(path: str) -> Callable[[Object], str]:
    def value(queue: Object) -> str:
        found = field(queue, path, {})
        listed = (f"{resource}={amount}" for resource, amount in sorted(found.items()))
        return ",".join(listed) or "-"

    return value
