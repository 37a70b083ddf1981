"""kube-scheduler with Kubernetes' own gangs and Tutti with its gangs on the same nodes: neither
over-commitment nor a deadlock, whatever is killed.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.chaos.forms import KUBE_SCHEDULER, TUTTI
from tests.chaos.two_schedulers import WRITERS, SharedReport

ROOT: Final = Path(__file__).parents[2]
#: Far fewer than a run has on a machine that is three times overloaded.
_GANGS_MIN: Final = 20


@pytest.mark.certify
@pytest.mark.usefixtures("binaries")
@pytest.mark.integration
@pytest.mark.timeout(420)
def test_gangs_of_two_schedulers_finish_beside_each_other(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    command = [sys.executable, "-m", "tests.chaos", "--two-schedulers", "--minutes=1.5"]
    command += ["--seed=17", f"--json={file}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found = msgspec.json.decode(file.read_bytes(), type=SharedReport)
    # Without these the run would have shown nothing.
    assert {"kube-scheduler killed", "gang-planner killed", "binder killed"} <= found.faults.keys()
    assert found.conflicts > 0, "no node was wanted by both at the same time"
    for scheduler in (TUTTI, KUBE_SCHEDULER):
        one = found.schedulers[scheduler]
        assert one.finished == one.gangs > _GANGS_MIN
        assert one.status_writers == (WRITERS[scheduler],)
    natives = found.schedulers[KUBE_SCHEDULER]
    assert natives.reported_scheduled > _GANGS_MIN, "their groups mean nothing to kube-scheduler"
    assert sum(one.refused for one in found.schedulers.values()) > 0
