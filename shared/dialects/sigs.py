"""scheduling.sigs.dev/v1alpha2 PodGroup and Queue: kube-batch's later name for the same two kinds.
See `kubebatch_api` for the meaning of the fields.
"""

from typing import Final

from shared.dialects.kubebatch_api import kube_batch_dialect
from shared.kube.resources import PODGROUPS_SIGS, QUEUES_SIGS

DIALECT: Final = kube_batch_dialect("sigs", 30, PODGROUPS_SIGS, QUEUES_SIGS)
