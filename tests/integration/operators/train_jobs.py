"""TrainJobs of Kubeflow's Trainer v2, with the Trainer and JobSet's controller at work."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.operators.building import BuiltOperator
from tests.controlplane.operators.managers import JOBSET, running_manager
from tests.controlplane.operators.trainer import running_trainer
from tests.documents.links import ROOT
from tests.integration.operators.managed_sets import ManagedKind, ManagedSets
from tests.integration.stage import Stage

KIND: Final = ManagedKind(
    word="trainjob",
    plural="trainjobs",
    version="trainer.kubeflow.org/v1alpha1",
    name_label="jobset.sigs.k8s.io/jobset-name",
)


def serve_kinds(
    control_plane: ControlPlane, trainer_operator: BuiltOperator, jobset_operator: BuiltOperator
) -> None:
    """Serve the kinds before Tutti starts: the watcher looks for absent kinds twice a minute.

    The Trainer refuses to start without JobSet's, and makes no group without coscheduling's.
    """
    for crds in (ROOT / "tests" / "dialects" / "crds", jobset_operator.crds, trainer_operator.crds):
        control_plane.install_crds(crds)


@asynccontextmanager
async def train_jobs(
    stage: Stage, trainer_operator: BuiltOperator, jobset_operator: BuiltOperator, folder: Path
) -> AsyncIterator[ManagedSets]:
    """TrainJobs, and both operators at work, which log into the folder."""
    found = ManagedSets(stage, KIND)
    of_jobset = folder / "jobset"
    of_jobset.mkdir()
    jobset = running_manager(JOBSET, jobset_operator, stage.control_plane, stage.api, of_jobset)
    log = folder / "operator.log"
    trainer = running_trainer(trainer_operator, stage.control_plane, stage.api, log)
    async with found.operated(jobset, trainer):
        yield found
        # The operator removes their finalizer once their TrainJobs are gone.
        await stage.api.delete(stage.path("trainingruntimes", version=KIND.version))
