"""A gang declared by a policy/v1 PodDisruptionBudget, as Kubeflow 0.3 did for kube-batch.

The members are the pods that have the same controller as the budget; the budget's selector is not
read. Only an integer minAvailable is a gang size: a percentage, maxUnavailable, or a budget without
a controller declares none. Kubernetes' own controller writes the budget's status, so a verdict is
written to annotations only. The API server validates budgets.
"""

from typing import Final

from shared.dialects.group_metadata import last_run
from shared.dialects.pods import controller_owner, traceparent
from shared.dialects.protocol import Dialect, Kind, Status, identity
from shared.dialects.run_limits import run_limit_s
from shared.dialects.settings import read_settings, setting_errors
from shared.kube import objects as kube
from shared.kube.resources import DISRUPTION_BUDGETS
from shared.model import objects as model

NAME: Final = "disruption_budget"


def read_disruption_budget(budget: kube.DisruptionBudget) -> model.PodGroup | None:
    """The gang that a controlled budget declares; None when it declares none."""
    metadata = budget.metadata
    owner = controller_owner(metadata)
    size = budget.spec.min_available
    if owner is None or not isinstance(size, int) or size <= 0:
        return None
    return model.PodGroup(
        **identity(metadata),
        dialect=NAME,
        created_ms=metadata.created_ms,
        by_owner=True,
        owner=owner,
        min_member=size,
        deleting=metadata.deletion_timestamp is not None,
        settings=read_settings(metadata.annotations),
        run_limit_s=run_limit_s(metadata),
        last_run=last_run(metadata),
        traceparent=traceparent(metadata.annotations),
        errors=tuple(setting_errors(metadata.annotations)),
    )


DIALECT: Final = Dialect(
    name=NAME,
    kinds=(
        Kind(
            resource=DISRUPTION_BUDGETS,
            neutral="podgroup",
            decoded=kube.DisruptionBudget,
            # The API server validates budgets, so none is unreadable.
            read=read_disruption_budget,
            status=Status(at=""),
            claims_by_owner=True,
        ),
    ),
)
