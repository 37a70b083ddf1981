"""Runs a command's coroutine, and reports a failure in a sentence with the remedy."""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

import click

from shared.kube.errors import (
    ApiError,
    Conflict,
    CredentialsError,
    Forbidden,
    KubeError,
    NotFound,
    TransportError,
    Unauthorized,
)
from shared.kube.objects import StatusCause
from tutti.api.conventions import conventions

T = TypeVar("T")

#: A program that a signal ended: 128 and the number of SIGINT.
_INTERRUPTED = 130
_KIND_MISSING = "the server could not find the requested resource"


class Refusal(Exception):
    """What was asked for cannot be done; the message says why, and what would help."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end and return what it returns; a failure is reported, and ends the program."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except BaseExceptionGroup as failures:
        # Tasks side by side fail as a group; one reason is enough.
        found = _first(failures)
        if not isinstance(found, KubeError | Refusal | OSError):
            raise
        fail(explained(found))
    except BrokenPipeError:
        # The reader of our output has seen enough; click ends the program quietly.
        raise
    except (KubeError, Refusal, OSError) as error:
        fail(explained(error))


def fail(message: str) -> NoReturn:
    """Say it and end, as the program's users expect it."""
    habits = conventions()
    if not habits.volcano_failures:
        click.echo(f"tutti: {message}", err=True)
        sys.exit(1)
    context = click.get_current_context(silent=True)
    words = []
    while context is not None and context.parent is not None:
        words.append(context.info_name or "")
        context = context.parent
    click.echo(f"{' '.join(['Failed to', *words])}: {message}")
    sys.exit(255)


def explained(error: Exception) -> str:
    """A failure in words."""
    match error:
        case NotFound() if _KIND_MISSING in error.message or not error.details.name:
            return (
                f"the cluster does not serve {error.details.kind or 'this kind'}: "
                "install the CRDs with `tutti up --install-crds`"
            )
        case NotFound():
            kind = error.details.kind.rstrip("s") or "object"
            return f"there is no {kind} {error.details.name!r}: is the namespace right (-n)?"
        case Conflict() if error.reason == "AlreadyExists":
            return f"{error.message}: choose another name, or delete it first"
        case Unauthorized():
            return "the API server does not know you: are the credentials in the kubeconfig valid?"
        case ApiError() if len(error.details.causes) > 1:
            # The message has them all on one line.
            causes = [_cause(each) for each in error.details.causes]
            return "\n  ".join(["the API server refuses it:", *causes])
        case Forbidden():
            return f"not allowed: {error.message}"
        case ApiError():
            return f"the API server refuses: {error.message}"
        case TransportError():
            return f"no answer from the API server: {error} (is the cluster up, and the right one?)"
        case CredentialsError() | OSError() | _:
            return str(error)


def _cause(cause: StatusCause) -> str:
    return f"{cause.field}: {cause.message}" if cause.field else cause.message


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    found = failures.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found
