"""Names of gangs in messages: the object that their user created, as "team/jobset/train"."""

from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from shared.model.gang_keys import gang_title
from shared.model.objects import Pod
from shared.model.owners import owner_title


def title_of(state: State, gang: Gang) -> str:
    """The gang's name in messages: its namespace, and kind and name of the topmost known owner, or
    else the gang's own name. With its dialect, or the scope of its name, where a gang of another
    scope has the same name.
    """

    def pod_of(uid: str) -> Pod | None:
        member = state.members.get(uid)
        return member.pod if member is not None else None

    owner = gang.group.owner if gang.group is not None else None
    members = (member.pod for member in gang.members.values())
    workloads = state.reference_objects.workloads
    known = owner_title(workloads, pod_of, owner, gang.namespace, members)
    distinction = state.gangs.distinction(gang)
    title = f"{gang.namespace}/{known or gang_title(gang.name)}"
    return f"{title} ({distinction})" if distinction else title
