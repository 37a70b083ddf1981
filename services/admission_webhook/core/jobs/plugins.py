"""Checks of the plugins that a Job names, of the plugins that these need, and of flags."""

from collections.abc import Iterator
from typing import Final

from services.admission_webhook.core.parts import as_list, as_object, objects_at, text_at
from services.admission_webhook.core.suggestions import Hints
from shared.dialects.field_checks import shown
from shared.dialects.protocol import FieldError, JsonObject
from shared.job_plugins.discovery import registered_plugins

_MPI: Final = "mpi"
_MASTER: Final = "master"


def plugin_errors(spec: JsonObject, hints: Hints) -> Iterator[FieldError]:
    """Unknown plugins, and `mpi` without a task for its master."""
    plugins = as_object(spec.get("plugins")) or {}
    known = registered_plugins()
    for name in plugins:
        if name not in known:
            near = hints.near(name, known)
            message = (
                f"Unsupported value: {shown(name)}: unable to find job plugin: {name[:63]}{near}"
            )
            yield FieldError(path=f"spec.plugins.{name[:63]}", message=message)
    if _MPI in plugins and not _has_master(spec, as_list(plugins[_MPI])):
        yield FieldError(
            path=f"spec.plugins.{_MPI}", message="The specified mpi master task was not found"
        )


def _has_master(spec: JsonObject, flags: list[object]) -> bool:
    master = flag(flags, "master", _MASTER)
    return any(text_at(task, "name") == master for _, task in objects_at(spec, "tasks"))


def flag(flags: list[object], name: str, default: str) -> str:
    """The value of a Go-style flag, given as `--name=value`, `-name=value` or `--name value`; the
    last one counts. Words after the first that Go's parser would refuse are ignored.
    """
    value = default
    words = iter([one for one in flags if isinstance(one, str)])
    for word in words:
        bare = word[2:] if word.startswith("--") else word[1:]
        if not word.startswith("-") or not bare:
            break
        key, assigned, given = bare.partition("=")
        if not assigned:
            given = next(words, "")
        if key == name:
            value = given
    return value
