"""What a PodGroup gets that it does not say: its namespace's queue, or `default`."""

from services.admission_webhook.core.case import Case
from services.admission_webhook.core.parts import as_object, lacks_text
from services.admission_webhook.core.queue_tree import DEFAULT
from services.admission_webhook.core.review import PatchOperation, added


def queue_of_namespace(case: Case) -> list[PatchOperation]:
    """The queue that the namespace names (annotation `scheduling.volcano.sh/queue-name`) for a
    group in none or in `default`, which the schema gives to every group that names none.
    """
    spec = as_object(case.candidate.get("spec"))
    meant = case.known.namespace_queues.get(case.namespace)
    if spec is None or meant is None or spec.get("queue") not in {None, DEFAULT}:
        return default_queue(case)
    return [added(meant, "spec", "queue")]


def default_queue(case: Case) -> list[PatchOperation]:
    """`default` where no queue is named. A group without spec stays without: it declares nothing.

    "" is for Volcano's schema to refuse.
    """
    spec = as_object(case.candidate.get("spec"))
    return (
        [added(DEFAULT, "spec", "queue")] if spec is not None and spec.get("queue") is None else []
    )


def default_queue_or_empty(case: Case) -> list[PatchOperation]:
    """The same for kube-batch's groups, whose clients write "" for no queue."""
    spec = as_object(case.candidate.get("spec"))
    return (
        [added(DEFAULT, "spec", "queue")] if spec is not None and lacks_text(spec, "queue") else []
    )
