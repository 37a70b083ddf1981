"""What each user may publish and subscribe to on NATS: one user per account, with its own subjects.

Pure. The subjects are those that the code uses, JetStream's API and acknowledgements included; a
test on a real server tries every user on every subject of the other users.

A limit of permissions: a client names the subject for an answer, and JetStream sends its answer to
any subject, also one of a stream. So operators' commands have an account of their own, from which
no subject reaches a stream. Services share one account: with a stolen key of a service, the
server's answers can be stored in any stream, but no content of the thief's choice.
"""

from typing import Final

import msgspec

from shared.bus.consumer_sets import lease_key
from shared.bus.setup import PLANNER_SETS, consumer_configs, observer_configs, stream_configs
from shared.contracts import subjects

#: Replicas of the webhook, and of the API service, for which `shared.bus.setup` creates consumers.
REPLICAS: Final = 2

#: The user that sets up streams; also for `tutti` commands that query running services.
PROVISION: Final = "provision"
READER: Final = "reader"
#: All controllers in one process, on one machine.
CONTROLLERS: Final = "controller"

_API: Final = "$JS.API"
#: Prefix of JetStream's API in the operators' account.
PEOPLES_API: Final = "TUTTI.JS"
_LEASES: Final = f"KV_{subjects.LEASES}"


class User(msgspec.Struct, frozen=True, kw_only=True):
    """One NATS user.

    Attributes:
        name: As the account in Kubernetes is called; `--nats-user` of its service.
        publish: Subjects on which it may publish.
        subscribe: Subjects to which it may subscribe.
        answers: Whether it may answer requests, on the subject that a request names.
        apart: Whether it is in the operators' account, from which its messages are imported.
    """

    name: str
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = True
    apart: bool = False


def users(
    *, planners: int = PLANNER_SETS, webhooks: int = REPLICAS, apis: int = REPLICAS
) -> tuple[User, ...]:
    """Every user, for so many consumer sets of planners, and replicas of the webhook and of the API
    service.
    """
    return (
        _watcher(),
        _planner(planners),
        _binder(),
        _webhook(webhooks),
        _api(apis),
        *_controllers(),
        _provision(planners, webhooks, apis),
        _reader(),
    )


def local_users(
    *, planners: int, webhooks: int, apis: int, observed: bool = False
) -> tuple[User, ...]:
    """The users of `tutti up`'s own NATS: those of a cluster, and one for the process that runs all
    controllers, with the rights of both controllers. `observed`: an observer replaces binders and
    controllers.
    """
    if observed:
        return (
            _watcher(),
            _planner(planners),
            _observer(),
            _provision(planners, webhooks, apis, observed=True),
            _reader(observed=True),
        )
    status, jobs = _controllers()
    both = _user(
        CONTROLLERS,
        publish=tuple({*status.publish, *jobs.publish}),
        subscribe=(subjects.lease(subjects.PLANNER_LEASE_KEY),),
    )
    return (*users(planners=planners, webhooks=webhooks, apis=apis), both)


def at_services(subject: str) -> str:
    """The name in the services' account of a subject in the operators' account."""
    head, _, rest = subject.partition(f"{PEOPLES_API}.")
    return subject if head else f"{_API}.{rest}"


def inbox(user: str) -> str:
    """First part of the subjects on which a user receives answers."""
    return f"_INBOX_{user}"


def _watcher() -> User:
    return _user(
        "watcher",
        publish=(subjects.cluster("*"), *_fencing(subjects.CLUSTER), *_leasing("watcher")),
        subscribe=(subjects.ASK_SNAPSHOT, *_leases("watcher")),
    )


def _planner(replicas: int) -> User:
    following = (
        subject
        for ordinal in range(replicas)
        for stream in subjects.STREAMS
        for subject in _following(stream, subjects.planner_consumer(stream, ordinal))
    )
    sets = tuple(
        subject
        for number in range(replicas)
        for subject in _leases(lease_key("gang-planner", number))
    )
    return _user(
        "gang-planner",
        publish=(
            subjects.DECISIONS_SUBJECTS,
            subjects.VERDICTS_SUBJECTS,
            subjects.WANTED_SUBJECTS,
            subjects.PROVISIONING_SUBJECTS,
            subjects.ASK_SNAPSHOT,
            *_fencing(subjects.DECISIONS),
            *(_info(stream) for stream in subjects.STREAMS if stream != subjects.DECISIONS),
            _get(subjects.VERDICTS),
            *following,
            *_leasing(subjects.PLANNER_LEASE_KEY),
            *sets,
        ),
        subscribe=(
            subjects.ASK_FIT,
            subjects.ASK_LEDGER,
            subjects.ASK_FRAGMENTATION,
            subjects.ASK_ESTIMATES,
            subjects.ASK_SUGGESTIONS,
            subjects.REPORT_REFUSED,
            *_leases(subjects.PLANNER_LEASE_KEY),
            *sets,
        ),
    )


def _binder() -> User:
    return _user(
        "binder",
        publish=(
            subjects.OUTCOMES_SUBJECTS,
            _info(subjects.DECISIONS),
            _get(subjects.OUTCOMES),
            *_working(subjects.DECISIONS, subjects.BINDER_CONSUMER),
        ),
    )


def _webhook(replicas: int) -> User:
    following = (
        subject
        for ordinal in range(replicas)
        for subject in _following(subjects.CLUSTER, subjects.webhook_consumer(ordinal))
    )
    return _user(
        "admission-webhook",
        publish=(subjects.ASK_SNAPSHOT, subjects.ASK_FIT, _info(subjects.CLUSTER), *following),
    )


def _api(replicas: int) -> User:
    read = (
        *((stream, stream) for stream in subjects.STREAMS),
        (subjects.DECISIONS, subjects.NOTES),
    )
    following = (
        subject
        for ordinal in range(replicas)
        for stream, records in read
        for subject in _following(stream, subjects.api_consumer(records, ordinal))
    )
    return _user(
        "api",
        publish=(
            subjects.ASK_SNAPSHOT,
            subjects.ASK_FIT,
            subjects.ASK_LEDGER,
            subjects.ASK_FRAGMENTATION,
            subjects.ASK_ESTIMATES,
            subjects.ASK_SUGGESTIONS,
            subjects.ASK_STATUS,
            _get(subjects.VERDICTS),
            *(_info(stream) for stream in subjects.STREAMS),
            *following,
        ),
    )


def _controllers() -> tuple[User, User]:
    verdicts = subjects.VERDICTS
    return (
        _user(
            "controller-status",
            publish=(
                _info(verdicts),
                _get(verdicts),
                *_working(verdicts, subjects.CONTROLLER_CONSUMER),
                *_working(verdicts, subjects.PROVISIONING_CONSUMER),
                subjects.REPORT_REFUSED,
            ),
            # The controller shows users on a Lease of the API server that a planner is alive.
            subscribe=(subjects.lease(subjects.PLANNER_LEASE_KEY),),
        ),
        _user(
            "controller-jobs",
            publish=(subjects.ASK_LEDGER, *_working(verdicts, subjects.PODGROUP_CONSUMER)),
        ),
    )


def _observer() -> User:
    logs = (subjects.CLUSTER, subjects.DECISIONS)
    return _user(
        "observer",
        publish=(
            subjects.OUTCOMES_SUBJECTS,
            subjects.ASK_SNAPSHOT,
            _get(subjects.OUTCOMES),
            *(_info(stream) for stream in logs),
            *(
                subject
                for stream in logs
                for subject in _following(stream, subjects.observer_consumer(stream))
            ),
        ),
        subscribe=(subjects.ASK_OBSERVATION,),
    )


def _provision(planners: int, webhooks: int, apis: int, *, observed: bool = False) -> User:
    streams = (
        f"{_API}.STREAM.{call}.{stream['name']}"
        for stream in stream_configs(1)
        for call in ("CREATE", "INFO", "UPDATE")
    )
    consumers = (
        f"{_API}.CONSUMER.CREATE.{stream}.{consumer['durable_name']}"
        for stream, consumer in (
            *consumer_configs(planners, webhooks, apis),
            *(observer_configs() if observed else ()),
        )
    )
    return _user(
        PROVISION,
        publish=(
            subjects.CLUSTER_OPENED,
            subjects.DECISIONS_OPENED,
            subjects.ASK_STATUS,
            # When OUTCOMES alone was lost (`setup`).
            f"{_API}.STREAM.DELETE.{subjects.DECISIONS}",
            *streams,
            *consumers,
        ),
        answers=False,
    )


def _reader(*, observed: bool = False) -> User:
    return _user(
        READER,
        publish=(
            subjects.ASK_STATUS,
            subjects.ASK_LEDGER,
            *((subjects.ASK_OBSERVATION,) if observed else ()),
            *(f"{PEOPLES_API}.STREAM.INFO.{stream}" for stream in subjects.STREAMS),
            *(f"{PEOPLES_API}.STREAM.MSG.GET.{stream}" for stream in subjects.STREAMS),
        ),
        answers=False,
        apart=True,
    )


def _user(
    name: str,
    *,
    publish: tuple[str, ...],
    subscribe: tuple[str, ...] = (),
    answers: bool = True,
    apart: bool = False,
) -> User:
    """A user that receives its inbox and, if it `answers`, the requests to all services."""
    requests = (subjects.ASK_STATUS,) if answers else ()
    return User(
        name=name,
        publish=tuple(sorted(publish)),
        subscribe=tuple(sorted((f"{inbox(name)}.>", *requests, *subscribe))),
        answers=answers,
        apart=apart,
    )


def _info(stream: str) -> str:
    return f"{_API}.STREAM.INFO.{stream}"


def _get(stream: str) -> str:
    return f"{_API}.STREAM.MSG.GET.{stream}"


def _fencing(stream: str) -> tuple[str, ...]:
    """Rights of a fenced writer beside appending: the stream's generation, and its records."""
    return _info(stream), _get(stream)


def _leases(key: str) -> tuple[str, ...]:
    """Renewals of a lease, and the subject that shows that its holder's process exists."""
    return subjects.lease(key), subjects.lease_holder(key, "*")


def _leasing(key: str) -> tuple[str, ...]:
    return *_leases(key), _get(_LEASES)


def _following(stream: str, consumer: str) -> tuple[str, ...]:
    """Rights of a log reader: pull, and reset the consumer."""
    return tuple(f"{_API}.CONSUMER.{call}.{stream}.{consumer}" for call in ("MSG.NEXT", "RESET"))


def _working(stream: str, consumer: str) -> tuple[str, ...]:
    """Rights of a worker: pull, and acknowledge."""
    return f"{_API}.CONSUMER.MSG.NEXT.{stream}.{consumer}", f"$JS.ACK.{stream}.{consumer}.>"
