"""Runs a command's coroutine, and reports a failure in a sentence with the remedy.

Every command ends in the same way: with status 0 when it is done, or its answer is yes; with 1 when
its answer is no; and after a failure with a line on standard error and status 2, as after wrong
usage. An exception of any other kind is a bug, and shows its traceback.
"""

import asyncio
import functools
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, ParamSpec, TypeVar

import click

from shared.bus.errors import BusError
from shared.kube import resources
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

P = ParamSpec("P")
T = TypeVar("T")

#: There is no answer.
_FAILED = 2
#: A program that a signal ended: 128 and the number of SIGINT.
_INTERRUPTED = 130
#: Kinds without a namespace, by their plurals, as a Status has them.
_OF_CLUSTER = frozenset(
    resource.plural
    for resource in vars(resources).values()
    if isinstance(resource, resources.Resource) and not resource.namespaced
)
_KIND_MISSING = "the server could not find the requested resource"


class Refusal(Exception):
    """A request cannot be carried out; the message names the reason and the remedy."""


def run(work: Coroutine[Any, Any, T], *, interrupted: int = _INTERRUPTED) -> T:
    """Run a command's coroutine and return its result; an expected failure ends the program.

    Args:
        work: The command.
        interrupted: Exit status after Ctrl-C; 0 for a command that runs until then.
    """
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        sys.exit(interrupted)
    except BrokenPipeError:
        # The reader of our output has closed it; click ends the program quietly.
        raise
    except (BaseExceptionGroup, KubeError, BusError, Refusal, OSError) as error:
        first = first_failure(error)
        if not isinstance(first, KubeError | BusError | Refusal | OSError):
            raise
        fail(explained(first))


def running(
    *, interrupted: int = _INTERRUPTED
) -> Callable[[Callable[P, Coroutine[Any, Any, T]]], Callable[P, T]]:
    """Makes the function of a command from a coroutine function, by `run`."""

    def decorate(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
        @functools.wraps(work)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return run(work(*args, **kwargs), interrupted=interrupted)

        return call

    return decorate


def fail(message: str) -> NoReturn:
    """Print the message and end the program, in the way of the program that runs."""
    own = conventions()
    if not own.volcano_failures:
        click.echo(f"tutti: {message}", err=True)
        sys.exit(_FAILED)
    context = click.get_current_context(silent=True)
    words = []
    while context is not None and context.parent is not None:
        words.append(context.info_name or "")
        context = context.parent
    click.echo(f"{' '.join(['Failed to', *words])}: {message}")
    sys.exit(255)


def explained(error: Exception) -> str:
    """A failure as a sentence, with the remedy where one is known."""
    match error:
        case NotFound() if _KIND_MISSING in error.message or not error.details.name:
            return (
                f"the cluster does not serve {error.details.kind or 'this kind'}: "
                "install the CRDs with `tutti up --install-crds`"
            )
        case NotFound():
            kind = error.details.kind
            words = f"there is no {kind.rstrip('s') or 'object'} {error.details.name!r}"
            return words if kind in _OF_CLUSTER else f"{words}: is the namespace right (-n)?"
        case Conflict() if error.reason == "AlreadyExists":
            return f"{error.message}: choose another name, or delete it first"
        case Unauthorized():
            return "the API server does not know you: are the credentials in the kubeconfig valid?"
        case ApiError() if len(error.details.causes) > 1:
            # The message would have all causes on one line.
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


def first_failure(error: BaseException) -> BaseException:
    """The first exception of a group; concurrent tasks usually fail for the same reason."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
