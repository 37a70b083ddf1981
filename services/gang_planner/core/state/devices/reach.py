"""Where a claim with chosen devices can be used."""

from collections.abc import Iterable

from services.gang_planner.core.state.devices.device_table import DeviceEntry
from shared.model.terms import Requirement, SelectorTerm


def within_all(entries: Iterable[DeviceEntry]) -> tuple[SelectorTerm, ...] | None:
    """Nodes that can use all these devices; (): all nodes; None: only the node for which they were
    chosen.
    """
    expressions: dict[Requirement, None] = {}
    fields: dict[Requirement, None] = {}
    for entry in entries:
        if entry.on_one_node or (entry.reach is not None and len(entry.reach) != 1):
            # Kubernetes allows one term in a slice.
            return None
        for term in entry.reach or ():
            expressions.update(dict.fromkeys(term.expressions))
            fields.update(dict.fromkeys(term.fields))
    if not expressions and not fields:
        return ()
    return (SelectorTerm(expressions=tuple(expressions), fields=tuple(fields)),)
