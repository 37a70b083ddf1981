"""From a Fit to questions for the planner, and from the planner's answers to the Fit's status."""

from collections.abc import Iterable

import msgspec

from services.api.errors import RequestFailed
from shared.admission.judgement import Asked, KnownQueue, Refused, questions
from shared.contracts import codec
from shared.contracts.questions import FitAnswer, FitRequest
from shared.contracts.visibility import Fit, FitStatus
from shared.visible_objects import build_gang_fit


class GangQuestion(msgspec.Struct, frozen=True, kw_only=True):
    namespace: str
    name: str
    members: int
    #: The FitRequest as the planner reads it.
    payload: bytes


def questions_of(
    fit: Fit, namespace: str, scheduler_names: Iterable[str], queues: Iterable[KnownQueue] | None
) -> Asked:
    """The gangs of its manifests; `namespace` is for objects without one.

    Raises:
        RequestFailed: 422, admission would refuse a manifest, or they are no question.
    """
    try:
        return questions(
            fit.spec.manifests,
            namespace=namespace,
            scheduler_names=scheduler_names,
            queues=queues,
        )
    except Refused as refused:
        raise refusal(refused.errors) from None


def refusal(errors: Iterable[str]) -> RequestFailed:
    """The failure for manifests that would be refused."""
    texts = tuple(errors)
    return RequestFailed(
        422,
        f"spec.manifests: {'; '.join(texts)}",
        causes=tuple(("spec.manifests", error) for error in texts),
    )


def encoded(question: FitRequest) -> GangQuestion:
    """The question as it is sent to the planner."""
    return GangQuestion(
        namespace=question.group.namespace,
        name=question.group.name,
        members=len(question.pods),
        payload=codec.encode(question),
    )


def status_of(
    namespace: str,
    asked: Iterable[GangQuestion],
    answers: Iterable[FitAnswer],
    visible: frozenset[str] | None,
    warnings: Iterable[str] = (),
) -> FitStatus:
    """The status of a Fit in a namespace; gangs of `visible` namespaces are named (None: all).

    Raises:
        RequestFailed: 422, the planner knows that admission would refuse a gang.
    """
    paired = list(zip(asked, answers, strict=True))
    refused = [
        f"{question.namespace}/{question.name}: {a.sentence}" for question, a in paired if a.refused
    ]
    if refused:
        raise refusal(refused)
    gangs = tuple(
        build_gang_fit(
            question.name,
            question.members,
            answer,
            visible,
            namespace=question.namespace if question.namespace != namespace else "",
        )
        for question, answer in paired
    )
    fits = all(gang.fits for gang in gangs)
    return FitStatus(fits=fits, gangs=gangs, warnings=tuple(warnings))
