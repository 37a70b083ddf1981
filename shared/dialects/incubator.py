"""scheduling.incubator.k8s.io/v1alpha1 PodGroup and Queue: the API group of kube-batch and of
Kubeflow's operators of that time. See `kubebatch_api` for the meaning of the fields.
"""

from typing import Final

from shared.dialects.kubebatch_api import kube_batch_dialect
from shared.kube.resources import PODGROUPS_INCUBATOR, QUEUES_INCUBATOR

DIALECT: Final = kube_batch_dialect("incubator", 20, PODGROUPS_INCUBATOR, QUEUES_INCUBATOR)
