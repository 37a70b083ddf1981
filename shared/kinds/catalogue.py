"""All kinds whose CRDs Tutti ships."""

from typing import Final

from shared.kinds.command import COMMAND
from shared.kinds.cronjob import CRON_JOB
from shared.kinds.fields import Description
from shared.kinds.hypernode import HYPER_NODE
from shared.kinds.job import JOB
from shared.kinds.jobflow import JOB_FLOW, JOB_TEMPLATE
from shared.kinds.kubebatch import KUBE_BATCH
from shared.kinds.podgroup import POD_GROUP
from shared.kinds.queue import QUEUE

#: Raise this with each change of a schema below; see `tutti.up.crds`.
SCHEMA_REVISION: Final = 5

CATALOGUE: Final[tuple[Description, ...]] = (
    JOB,
    CRON_JOB,
    POD_GROUP,
    QUEUE,
    COMMAND,
    JOB_FLOW,
    JOB_TEMPLATE,
    HYPER_NODE,
    *KUBE_BATCH,
)
