"""The policy file (`volcano-scheduler.conf`): read at start, watched, and never replaced by an
invalid one.
"""

import asyncio
import logging
import pathlib
from collections.abc import Callable

from services.gang_planner.core.configuration.configuration import (
    Configuration,
    parse_configuration,
    with_defaults,
)
from services.gang_planner.core.framework.arguments import ConfigurationError
from services.gang_planner.core.state.gang_settings import Defaults

log = logging.getLogger(__name__)

#: A mounted ConfigMap changes within a minute of its edit, so two more seconds do not matter.
_CHECK_PERIOD_S = 2.0


class PolicyFile:
    """The configuration in force."""

    def __init__(self, path: str, defaults: Defaults, *, strict: bool = False) -> None:
        """Read the file; `defaults` are the planner's own settings, which it may override. With
        `strict` a file with a part that has no effect is invalid.

        Raises:
            ConfigurationError: It is invalid, and there is no previous one to keep.
            OSError: It cannot be read.
        """
        self._path = pathlib.Path(path) if path else None
        self._defaults = defaults
        self._strict = strict
        #: Why the file that was read last is invalid, and the previous one in force; "": it is
        #: valid.
        self.refused = ""
        self._stamp = self._stat()
        self.configuration: Configuration = self._read()

    def report(self) -> str:
        """The message for operators: why the file is refused, or its warnings; "": neither."""
        if self.refused:
            return f"the previous one is kept: {self.refused}"
        return "; ".join(f"without effect: {warning}" for warning in self.configuration.warnings)

    async def watch(self, on_change: Callable[[], None], on_report: Callable[[str], None]) -> None:
        """Check the file every two seconds; call `on_change` after each valid change. Without a
        file, return.

        `on_report` is called with the message for operators, now and after each change.
        """
        on_report(self.report())
        while self._path is not None:
            await asyncio.sleep(_CHECK_PERIOD_S)
            stamp = self._stat()
            if stamp == self._stamp:
                continue
            self._stamp = stamp
            try:
                self.configuration = self._read()
            except (ConfigurationError, OSError, UnicodeDecodeError) as error:
                log.error("keeping the previous policy: %s: %s", self._path, error)
                self.refused = str(error)
                on_report(self.report())
                continue
            log.info("policy read: %s", self._path)
            self.refused = ""
            on_report(self.report())
            on_change()

    def _stat(self) -> tuple[int, int, int]:
        if self._path is None:
            return (0, 0, 0)
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return (0, 0, -1)
        return (status.st_mtime_ns, status.st_ino, status.st_size)

    def _read(self) -> Configuration:
        text = self._path.read_text(encoding="utf-8") if self._path is not None else ""
        configuration = parse_configuration(with_defaults(text, self._defaults))
        if configuration.misspelt:
            raise ConfigurationError("tiers", "; ".join(configuration.misspelt))
        for warning in configuration.warnings:
            if self._strict:
                raise ConfigurationError("strict", warning)
            log.warning("%s: without effect: %s", self._path, warning)
        return configuration
