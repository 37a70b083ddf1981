"""What a rule is given: one operation on one object, and what is known of the cluster."""

from collections.abc import Mapping
from typing import Final

import msgspec

from services.admission_webhook.core.parts import text_at
from services.admission_webhook.core.queue_tree import QueueTree
from services.admission_webhook.core.resource_groups import ResourceGroups
from services.admission_webhook.core.review import Operation
from shared.dialects.protocol import JsonObject

#: Volcano's own scheduler name: the one that a Volcano Job without any means.
VOLCANO: Final = "volcano"


class ReferenceObjects(msgspec.Struct, frozen=True, kw_only=True):
    """What is known besides the review."""

    #: Names of schedulers that we are.
    scheduler_names: tuple[str, ...]
    #: None while the queues are not known: what needs them is left unchecked.
    queues: QueueTree | None = None
    #: Of the admission configuration file.
    resource_groups: ResourceGroups = ()
    #: Namespace -> the queue of its PodGroups that name none; only those that say so.
    namespace_queues: Mapping[str, str] = {}
    #: Names of the priority classes; None while they are not known.
    priority_classes: frozenset[str] | None = None


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One operation. `candidate` is what would be stored, `old` what is stored now; {} where there
    is none. Their parts may be of any JSON type.
    """

    operation: Operation
    namespace: str
    name: str
    candidate: JsonObject
    old: JsonObject
    known: ReferenceObjects


def job_scheduler(job: JsonObject) -> str:
    """The scheduler that a Volcano Job means, whether it says so or not."""
    return text_at(job, "spec", "schedulerName") or VOLCANO
