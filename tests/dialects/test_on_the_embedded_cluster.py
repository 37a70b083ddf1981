"""Cases come out as they say on the embedded cluster. `make test` plays every fifth of them.

The dialects do the same on the real cluster, in every run; that the embedded API server answers as
the real one, tests/api_suite shows.
"""

from pathlib import Path

import pytest

from tests.dialects.cases import Case
from tests.dialects.clusters import embedded_cluster
from tests.dialects.features import read_cases, read_features
from tests.dialects.played import Outcomes, judge, judge_recordings, outcomes

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

CASES = [case for case in read_cases(read_features()) if "embedded" not in case.not_on]
EACH_TIME = {case.name for case in CASES[::5]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embedded")


@pytest.fixture(scope="module")
def played(request: pytest.FixtureRequest, folder: Path) -> Outcomes:
    return outcomes(embedded_cluster, folder, request)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=case.name, marks=[] if case.name in EACH_TIME else [pytest.mark.certify]
        )
        for case in CASES
    ],
)
def test_case(played: Outcomes, case: Case) -> None:
    judge(played, case)


@pytest.mark.usefixtures("played")
def test_what_was_decided_for_all_cases_replays_byte_for_byte(folder: Path) -> None:
    judge_recordings(folder)
