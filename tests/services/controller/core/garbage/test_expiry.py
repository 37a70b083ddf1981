"""Finished Jobs are kept for their time to live."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from services.controller.core.garbage.expiry import expires
from shared.kinds.job import Job

ENDED = datetime(2026, 1, 1, tzinfo=UTC)


def job(phase: str, ttl_s: int | None, **metadata: Any) -> Job:
    spec = {} if ttl_s is None else {"ttlSecondsAfterFinished": ttl_s}
    state = {"phase": phase, "lastTransitionTime": ENDED}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"state": state}}, Job)


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
@pytest.mark.parametrize("ttl_s", [0, 30])
def test_a_finished_job_lives_for_its_ttl(phase: str, ttl_s: int) -> None:
    assert expires(job(phase, ttl_s)) == ENDED + timedelta(seconds=ttl_s)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Aborted", "Aborting", "Completing"])
def test_a_job_that_has_not_finished_is_kept(phase: str) -> None:
    assert expires(job(phase, 0)) is None


def test_a_job_without_ttl_and_one_that_goes_already_are_left() -> None:
    assert expires(job("Completed", None)) is None
    assert expires(job("Completed", 0, deletionTimestamp=ENDED)) is None
