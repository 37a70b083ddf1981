"""Whose trace a group continues; how groups are read by it is in `test_groups`."""

import msgspec
import pytest

from shared.contracts.identity import gang_trace_id, traceparent_of
from shared.dialects.group_metadata import link_of_job, trace_root
from shared.model.objects import Owner

JOB = Owner(api_version="batch.volcano.sh/v1alpha1", kind="Job", name="a", uid="u-1")
BATCH = msgspec.structs.replace(JOB, api_version="batch/v1")
FLOW = msgspec.structs.replace(JOB, kind="JobFlow")


@pytest.mark.parametrize(
    ("claimed", "owner", "root"),
    [
        ("u-1", JOB, "team/u-1"),
        ("u-2", JOB, ""),
        ("", JOB, ""),
        ("u-1", BATCH, ""),
        ("u-1", None, ""),
    ],
)
def test_a_claim_is_believed_of_the_own_job_only(
    claimed: str, owner: Owner | None, root: str
) -> None:
    assert trace_root(claimed, owner, "team") == root


def test_the_link_leads_to_the_jobs_first_trace() -> None:
    assert link_of_job(JOB, "team") == traceparent_of(gang_trace_id("team/u-1", 1))
    assert [link_of_job(other, "team") for other in (BATCH, FLOW, None)] == ["", "", ""]
