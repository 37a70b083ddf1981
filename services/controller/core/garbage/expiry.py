"""When a Job has been kept long enough. Pure."""

from datetime import datetime, timedelta

from shared.kinds.job import FINISHED_PHASES, Job


def expires(job: Job) -> datetime | None:
    """The instant from which it may be deleted; None: it is kept.

    An Aborted Job can be resumed, so it has not finished and is kept.
    """
    ttl_s = job.spec.ttl_seconds_after_finished
    state = job.status.state
    finished = state.phase in FINISHED_PHASES and job.metadata.deletion_timestamp is None
    if ttl_s is None or state.last_transition_time is None or not finished:
        return None
    return state.last_transition_time + timedelta(seconds=ttl_s)
