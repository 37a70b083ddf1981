"""Builds Instances from the answers of Tutti's services about themselves."""

from services.api.core.gang_objects import instant
from services.api.core.tables import Column, age, columns
from shared.contracts.questions import ServiceStatus
from shared.contracts.visibility import API_VERSION, Instance, InstanceStatus, ObjectMeta

INSTANCE_COLUMNS: tuple[Column, ...] = columns(
    ("Name", "string", "Name of the process.", 0),
    ("Service", "string", "Service that it is a process of.", 0),
    ("Ready", "boolean", "Whether it is ready.", 0),
    ("Active", "boolean", "False for the standby of a service with one writer.", 0),
    ("Version", "string", "Version of Tutti.", 0),
    ("Age", "string", "Time since its start.", 0),
    ("Not ready", "string", "Why it is not ready.", 0),
)


def build_instance(answer: ServiceStatus) -> Instance:
    """The object of a process, without its figures, notes and settings, which are for operators."""
    started = instant(answer.started_ms // 1000 * 1000)
    return Instance(
        api_version=API_VERSION,
        kind="Instance",
        metadata=ObjectMeta(name=answer.instance, creation_timestamp=started),
        status=InstanceStatus(
            service=answer.service,
            ready=answer.ready,
            not_ready=answer.not_ready,
            active=answer.active,
            version=answer.version,
            started=started,
        ),
    )


def instance_cells(instance: Instance, now_ms: int) -> tuple[str | int, ...]:
    """The cells of a process's row."""
    status = instance.status
    return (
        instance.metadata.name,
        status.service,
        status.ready,
        status.active,
        status.version,
        age(status.started, now_ms),
        "; ".join(status.not_ready),
    )
