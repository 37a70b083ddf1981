"""The admission configuration file: read at the start and whenever it changes.

An invalid file does not replace the groups in force.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from shared.admission.resource_groups import BadConfiguration, ResourceGroups, read_groups
from shared.yaml_documents import read_document

log = logging.getLogger(__name__)

#: A mounted ConfigMap changes within a minute of its edit; more frequent checks gain nothing.
CHECK_EVERY_S: Final = 2.0


class GroupFile:
    """The resource groups in force; without a file there are none."""

    def __init__(self, path: str) -> None:
        """Read the file. Blocks.

        Raises:
            BadConfiguration: It is invalid.
            OSError, UnicodeDecodeError: It cannot be read.
        """
        self._path = Path(path) if path else None
        self._content = self._read()
        self.groups: ResourceGroups = parsed_groups(self._content)

    async def watch(self, on_change: Callable[[], None], *, every_s: float = CHECK_EVERY_S) -> None:
        """Read the file periodically and call `on_change` after each valid change. Returns at once
        without a file.
        """
        while self._path is not None:
            await asyncio.sleep(every_s)
            try:
                content = await asyncio.to_thread(self._read)
                if content == self._content:
                    continue
                self._content = content
                self.groups = parsed_groups(content)
            except (BadConfiguration, OSError, UnicodeDecodeError) as error:
                log.error("keeping the previous resource groups: %s: %s", self._path, error)
                continue
            log.info("resource groups read: %s", self._path)
            on_change()

    def _read(self) -> str:
        return self._path.read_text(encoding="utf-8") if self._path is not None else ""


def parsed_groups(content: str) -> ResourceGroups:
    """The groups of a file's text. Raises BadConfiguration."""
    try:
        return read_groups(read_document(content))
    except ValueError as error:
        raise BadConfiguration(f"no YAML: {error}") from None
