"""The rules of every kind that the webhook reads. A further kind is one entry more."""

from typing import Final

from services.admission_webhook.core import (
    cronjobs,
    hypernodes,
    job_flows,
    pod_groups,
    pods,
    queues,
    workloads,
)
from services.admission_webhook.core.jobs import rules as jobs

RULES: Final = (
    pods.RULES,
    *pod_groups.RULES,
    jobs.RULES,
    *queues.RULES,
    job_flows.RULES,
    hypernodes.RULES,
    cronjobs.RULES,
    *workloads.RULES,
)

#: (API group, plural) -> the kind's rules.
BY_RESOURCE: Final = {(one.resource.group, one.resource.plural): one for one in RULES}
