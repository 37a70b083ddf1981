"""From a Fit to questions for the planner, and from the planner's answers to the Fit's status."""

from collections.abc import Iterable
from typing import Final

import msgspec

from services.api.core.requests import read_body
from services.api.errors import RequestFailed
from shared.contracts.fit_rules import broken_rule
from shared.contracts.questions import FitAnswer, FitRequest
from shared.contracts.visibility import Fit, FitStatus
from shared.dialects.manifests import InvalidManifest, expand
from shared.visible_objects import build_gang_fit


class GangQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One gang of a Fit."""

    name: str
    members: int
    #: The FitRequest as the planner reads it.
    payload: bytes


#: Gangs in one Fit: each is a question of its own.
GANGS_MAX: Final = 50

_decode: Final = msgspec.json.Decoder(Fit).decode


def read_fit(body: bytes) -> Fit:
    """The Fit in a request's body. Raises RequestFailed: 400, it is none."""
    return read_body(body, _decode, "Fit")


def questions_of(fit: Fit, namespace: str, scheduler_names: Iterable[str]) -> list[FitRequest]:
    """One question for each gang of its manifests.

    Raises:
        RequestFailed: 422, a manifest is invalid, breaks a rule for questions, or is in another
            namespace than the Fit.
    """
    try:
        found = expand(fit.spec.manifests, namespace=namespace, scheduler_names=scheduler_names)
    except (InvalidManifest, RecursionError) as error:
        raise RequestFailed(422, f"spec.manifests: {error}") from None
    if not found:
        raise RequestFailed(422, "spec.manifests: must declare a gang")
    if len(found) > GANGS_MAX:
        raise RequestFailed(422, f"spec.manifests: must declare at most {GANGS_MAX} gangs")
    for one in found:
        if one.group.namespace != namespace:
            raise RequestFailed(
                422,
                f"spec.manifests: {one.group.name} is in namespace {one.group.namespace}, "
                f"and must be in the Fit's, {namespace}",
            )
        broken = broken_rule(one)
        if broken:
            raise RequestFailed(422, f"spec.manifests: {one.group.name}: {broken}")
    return found


def status_of(
    questions: Iterable[GangQuestion],
    answers: Iterable[FitAnswer],
    visible: frozenset[str] | None,
) -> FitStatus:
    """The status of a Fit; gangs of `visible` namespaces are named (None: all)."""
    gangs = tuple(
        build_gang_fit(question.name, question.members, answer, visible)
        for question, answer in zip(questions, answers, strict=True)
    )
    return FitStatus(fits=all(one.fits for one in gangs), gangs=gangs)
