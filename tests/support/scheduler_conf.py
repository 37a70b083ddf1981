"""Another scheduler configuration for planners that run."""

import asyncio
from pathlib import Path

from shared.runtime.whole_files import write_whole
from tests.support.waiting import eventually


async def configure(conf: Path, text: str) -> None:
    """Write the file of a `tutti up`, which is beside its `data`, and wait until each planner has
    read it: they look every two seconds.
    """
    content = text.encode()
    if await asyncio.to_thread(conf.read_bytes) == content:
        return
    before = _times_read(conf)
    await asyncio.to_thread(write_whole, conf, content)

    def read_by_all() -> bool:
        return all(times > before[planner] for planner, times in _times_read(conf).items())

    await eventually(read_by_all, because="each planner reads its configuration")


def _times_read(conf: Path) -> dict[str, int]:
    """How often each planner has read it, by its log."""
    logs = list((conf.parent / "data" / "logs").glob("gang-planner-*.log"))
    assert logs, f"no planner has a log beside {conf}"
    return {log.stem: log.read_text().count("policy read: ") for log in logs}
