"""The namespace of a question's group: whether it exists, and the queue that it names."""

from typing import Final

import msgspec

from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.queues import DEFAULT
from shared.contracts.questions import FitRequest
from shared.model.objects import PodGroup

#: Dialects of groups of Volcano's kind, and of groups that would be made as such.
_VOLCANO: Final = frozenset({"volcano", ""})


def lacks_namespace(state: State, question: FitRequest) -> bool:
    """Whether the namespace of the question's group neither exists nor would be created."""
    known = state.reference_objects.namespaces.by_name
    name = question.group.namespace
    made = {one.name for one in question.namespaces}
    return bool(known) and ("", name) not in known and name not in made


def in_queue_of_namespace(state: State, question: FitRequest, group: PodGroup) -> PodGroup:
    """A group of the question as the webhook would create it: in the queue that its namespace
    names, if it is in no queue or in `default`, which the schema sets for a group that names none.
    """
    if group.dialect not in _VOLCANO or group.queue not in {"", DEFAULT}:
        return group
    found = state.reference_objects.namespaces.by_name.get(("", group.namespace))
    made = {one.name: one.queue for one in question.namespaces}
    queue = made.get(group.namespace, "") if found is None else found.queue
    return msgspec.structs.replace(group, queue=queue or group.queue)
