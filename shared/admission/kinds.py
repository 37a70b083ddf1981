"""The rules of every kind that the webhook reads.

A kind that needs defaults or reference objects is one entry more; any other kind of a dialect that
has `checks` of it is found by itself.
"""

from typing import Final

from shared.admission import (
    cronjobs,
    hypernodes,
    job_flows,
    pod_groups,
    pods,
    queues,
    workloads,
)
from shared.admission.jobs import rules as jobs
from shared.admission.rules import KindRules, violations_of_dialect
from shared.dialects.discovery import dialects

_WITH_ENTRIES: Final = (
    pods.RULES,
    *pod_groups.RULES,
    jobs.RULES,
    queues.RULES,
    job_flows.RULES,
    hypernodes.RULES,
    cronjobs.RULES,
    *workloads.RULES,
)


RULES: Final = (
    *_WITH_ENTRIES,
    *(
        KindRules(resource=kind.resource, violations=violations_of_dialect(kind.resource))
        for dialect in dialects()
        for kind in dialect.kinds
        if kind.resource.kind in dialect.checks
        and kind.resource not in {rules.resource for rules in _WITH_ENTRIES}
    ),
)

#: (API group, plural) -> the kind's rules.
BY_RESOURCE: Final = {(rules.resource.group, rules.resource.plural): rules for rules in RULES}
