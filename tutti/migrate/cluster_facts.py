"""The facts that a check reads from a cluster, as far as its rights allow."""

from collections.abc import Mapping
from typing import Final

import msgspec

from shared.kube.resources import (
    CRONJOBS_VOLCANO,
    HYPERNODES,
    JOBFLOWS,
    JOBS_VOLCANO,
    POD_GANGS,
    PODGROUPS_COSCHEDULING,
    PODGROUPS_INCUBATOR,
    PODGROUPS_KAI,
    PODGROUPS_SIGS,
    PODGROUPS_VOLCANO,
    QUEUES_INCUBATOR,
    QUEUES_SIGS,
    QUEUES_VOLCANO,
    Resource,
)
from shared.model.devices import ResourceClaim
from shared.model.objects import Pod, PodGroup
from tutti.api.objects import Object
from tutti.up.other_schedulers import OtherScheduler

QUEUES: Final = (QUEUES_VOLCANO, QUEUES_INCUBATOR, QUEUES_SIGS)
#: Groups that the webhook's rules check, and other groups that pods name.
CHECKED_GROUPS: Final = (PODGROUPS_VOLCANO, PODGROUPS_INCUBATOR, PODGROUPS_SIGS)
OTHER_GROUPS: Final = (PODGROUPS_COSCHEDULING, PODGROUPS_KAI, POD_GANGS)
GROUPS: Final = (*CHECKED_GROUPS, *OTHER_GROUPS)
#: Kinds whose stored objects are checked by the webhook's rules.
CHECKED_KINDS: Final = (
    *QUEUES,
    *CHECKED_GROUPS,
    JOBS_VOLCANO,
    CRONJOBS_VOLCANO,
    JOBFLOWS,
    HYPERNODES,
)


class PolicyText(msgspec.Struct, frozen=True, kw_only=True):
    """A volcano-scheduler.conf, and the errors and warnings of the planner's parser."""

    where: str
    text: str
    error: str = ""
    warnings: tuple[str, ...] = ()


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A stored object that the webhook's rules would refuse."""

    kind: str
    name: str
    errors: tuple[str, ...]


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts; `objects` are as the API server sent them."""

    scheduler_names: tuple[str, ...]
    objects: Mapping[Resource, list[Object]]
    #: Pods that have not ended, of all schedulers, and groups and claims, as the planner would read
    #: them.
    pods: tuple[Pod, ...] = ()
    groups: tuple[PodGroup, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    #: Pods that Jobs would create, with the Job's "namespace/name".
    templates: tuple[tuple[str, Pod], ...] = ()
    others: tuple[OtherScheduler, ...] = ()
    policies: tuple[PolicyText, ...] = ()
    #: ConfigMaps with resource groups of Volcano's admission.
    admission_files: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    unreadable: tuple[str, ...] = ()

    def of(self, resource: Resource) -> list[Object]:
        """The objects of a kind; none if it is not served or may not be listed."""
        return self.objects.get(resource, [])
