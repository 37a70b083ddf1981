"""Kubeflow's SDK, which submits TrainJobs to Trainer v2, on a real cluster."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.cluster import ControlPlane
from tests.controlplane.nodes import GPU
from tests.controlplane.operators.building import BuiltOperator
from tests.documents.playing import matches
from tests.integration.clients.programs import Programs, shown
from tests.integration.operators.examples import NAME, example_of
from tests.integration.operators.managed_sets import ManagedSets
from tests.integration.operators.scenarios import MEMBERS
from tests.integration.operators.train_jobs import serve_kinds, train_jobs
from tests.integration.stage import Stage
from tests.support.waiting import eventually

pytestmark = [pytest.mark.certify, pytest.mark.timeout(400)]

_SEEN_S: Final = 60.0
_STATUS: Final = """
import sys
from kubeflow.trainer import TrainerClient
print(TrainerClient().wait_for_job_status(sys.argv[1], status={sys.argv[2]}, timeout=50).status)
"""
_DELETE: Final = """
import sys
from kubeflow.trainer import TrainerClient
TrainerClient().delete_job(sys.argv[1])
"""


@pytest.fixture(scope="module", autouse=True)
def kinds(
    trainer_operator: BuiltOperator, jobset_operator: BuiltOperator, control_plane: ControlPlane
) -> None:
    serve_kinds(control_plane, trainer_operator, jobset_operator)


@pytest.fixture
async def sets(
    trainer_operator: BuiltOperator, jobset_operator: BuiltOperator, stage: Stage, tmp_path: Path
) -> AsyncIterator[ManagedSets]:
    """TrainJobs, with the runtime of the page about Trainer."""
    async with train_jobs(stage, trainer_operator, jobset_operator, tmp_path) as found:
        (runtime,) = [
            one for one in example_of("trainer").objects(NAME) if one["kind"] == "TrainingRuntime"
        ]
        await stage.created(runtime)
        yield found


async def test_of_two_train_jobs_the_second_waits_whole_until_the_first_is_deleted(
    stage: Stage, sets: ManagedSets, tmp_path: Path
) -> None:
    await stage.nodes(MEMBERS, extended={GPU: 1})
    programs = Programs(stage, tmp_path)
    (tmp_path / "submit.py").write_text(example_of("kubeflow-sdk", "submit.py").text)
    first = (await programs.said("submit.py")).split()[-1]
    await sets.wait_bound(first, MEMBERS)
    assert "Running" in await programs.said("-c", _STATUS, first, "Running")
    second = (await programs.said("submit.py")).split()[-1]
    await sets.wait_pods(second, MEMBERS)
    expected = re.sub(r"trainjob/\w+", f"trainjob/{second}", shown("kubeflow-sdk", "tutti why"))

    async def explained() -> bool:
        said = await stage.why(f"trainjob/{second}", "waits: ")
        assert matches(expected, said), said
        return True

    await eventually(explained, timeout_s=_SEEN_S, because="it is explained as on the page")
    assert not await sets.placed(second)
    await programs.said("-c", _DELETE, first)
    await sets.wait_bound(second, MEMBERS)
    for uid in await sets.places(second):
        stage.kubelet.finish(uid)
    assert "Complete" in await programs.said("-c", _STATUS, second, "Complete")
