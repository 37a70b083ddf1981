"""Finds the job plugins: every module of this package with a `build`, in the order of names."""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeAlias

from services.controller.core.jobs import plugins
from services.controller.core.jobs.plugins.plugin import JobPlugin
from shared.kinds.job import Job

Build: TypeAlias = Callable[[Sequence[str], Job], JobPlugin]


@cache
def plugin_builders() -> dict[str, Build]:
    """How each plugin is built, by the name that jobs give."""
    found: dict[str, Build] = {}
    for module in sorted(pkgutil.iter_modules(plugins.__path__), key=lambda one: one.name):
        build = getattr(importlib.import_module(f"{plugins.__name__}.{module.name}"), "build", None)
        if build is not None:
            found[module.name] = build
    return found


def plugins_of(job: Job) -> list[JobPlugin]:
    """The plugins of a job, by name; those that there are not are left out (its webhook refuses
    them).
    """
    builders = plugin_builders()
    return [
        builders[name](job.spec.plugins[name], job)
        for name in sorted(job.spec.plugins)
        if name in builders
    ]
