"""Nodes with a taint of the effect NoSchedule or NoExecute that the pod does not tolerate."""

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from services.gang_planner.core.constraints.filters import NodeFilter, NodeRule
from services.gang_planner.core.state.columns import Bools, Ints, Slots
from services.gang_planner.core.state.nodes import NodeTable
from services.gang_planner.core.state.pod_shapes import ShapeEntry
from services.gang_planner.core.state.taints import first_untolerated

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Up to this number of nodes, only their own sets of taints are evaluated, not all sets.
_FEW: Final = 8


class TaintToleration:
    """Evaluates each distinct set of taints once, however many nodes share it."""

    name = "TaintToleration"

    def passes(self, shape: ShapeEntry, nodes: NodeTable, slots: Slots) -> Bools:
        tolerations = shape.shape.tolerations
        sets = nodes.taint_set[slots]
        # An update of a few nodes must not evaluate the sets of all nodes.
        listed: list[int] = sets.tolist() if len(sets) <= _FEW else []
        judged: Iterable[int] = sorted(set(listed)) or range(len(nodes.taints.sets))
        tolerated = np.zeros(len(nodes.taints.sets), dtype=np.bool_)
        for taint_set in judged:
            tolerated[taint_set] = (
                first_untolerated(tolerations, nodes.taints.sets[taint_set]) is None
            )
        return tolerated[sets]

    def reasons(self, shape: ShapeEntry, nodes: NodeTable, slots: Ints) -> Counter[str]:
        counts: Counter[str] = Counter()
        sets: list[int] = nodes.taint_set[slots].tolist()
        for taint_set, count in Counter(sets).items():
            taint = first_untolerated(shape.shape.tolerations, nodes.taints.sets[taint_set])
            if taint is not None:
                counts[f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"] += count
        return counts


FILTER: Final[NodeFilter] = TaintToleration()
RULE: Final = NodeRule(FILTER, switch="predicate.TaintTolerationEnable", position=30)
