"""The question why an object waits: reads it and explains what was read."""

from collections.abc import Sequence

import msgspec

from shared.kube.client import KubeClient
from tutti.why.explanation import Answer, explain
from tutti.why.kinds import read_reference
from tutti.why.planner_liveness import read_liveness
from tutti.why.reader import NamespaceReader


async def explain_object(
    client: KubeClient,
    namespace: str,
    reference: str | Sequence[str],
    scheduler_names: Sequence[str],
) -> Answer:
    """Why a pod, a group or a job waits, and whether a planner is active.

    Args:
        client: An open client, whose user may get and list objects of the namespace.
        namespace: Namespace of the object.
        reference: `KIND/NAME`, `NAME`, or kind and name as two words.
        scheduler_names: Scheduler names that Tutti serves in this cluster.

    Raises:
        KubeError: A request failed.
        Refusal: There is no such kind or object, or more than one.
    """
    words = [reference] if isinstance(reference, str) else list(reference)
    word, name = read_reference(words)
    facts = await NamespaceReader(client, namespace, scheduler_names).read(word, name)
    ours = {each.pod.scheduler_name for each in facts.pods if each.pod.ours}
    liveness = await read_liveness(client, ours)
    return explain(msgspec.structs.replace(facts, planner=liveness))
