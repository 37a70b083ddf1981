"""docs/client.ipynb, run in a real Jupyter kernel against an embedded cluster.

`python -m tests.tutti.client.notebook` runs it and keeps the new outputs.
"""

import asyncio
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.support.packages import ROOT, make_importable
from tests.tutti.up import running as up
from tutti.cluster.embedded import EmbeddedCluster, Settings
from tutti.manifests.crds import manifests

NOTEBOOK: Final = ROOT / "docs" / "client.ipynb"
_LOCK: Final = ROOT / "requirements" / "notebook.lock"
_CELL_S: Final = 120
#: A group of a Job of Volcano's has the Job's UID in its name.
_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def read(path: Path = NOTEBOOK) -> Any:
    """The notebook. Installs what is needed for it first."""
    make_importable("notebook", _LOCK)
    import nbformat  # pyright: ignore[reportMissingImports]

    return nbformat.read(path, as_version=4)


async def run(notebook: Any, folder: Path) -> None:
    """Run all cells, which get new outputs. Raises CellExecutionError: one failed."""
    from nbclient import NotebookClient  # pyright: ignore[reportMissingImports]

    kubeconfig = folder / "kubeconfig"
    settings = Settings(nodes=4, crds=tuple(manifests()))
    async with EmbeddedCluster(settings) as cluster:
        cluster.kubeconfig(kubeconfig)
        async with up.suite(kubeconfig, folder / "suite", "--api") as suite:
            await suite.wait_ready()
            # The kernel is a process of its own, which imports Tutti and what was installed.
            path = os.pathsep.join((str(ROOT), *_installed()))
            environ = os.environ | {"KUBECONFIG": str(kubeconfig), "PYTHONPATH": path}
            client = NotebookClient(notebook, timeout=_CELL_S, kernel_name="python3")
            await client.async_execute(env=environ)


def outputs(notebook: Any) -> list[str]:
    """What each cell of code shows, without what differs between runs."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            shown = "".join(
                one.get("text") or one.get("data", {}).get("text/plain", "") for one in cell.outputs
            )
            found.append(_UID.sub("UID", shown))
    return found


def _installed() -> list[str]:
    import nbclient  # pyright: ignore[reportMissingImports]

    return [str(Path(next(iter(nbclient.__path__))).parent)]


async def _renew() -> None:
    notebook = read()
    import nbformat  # pyright: ignore[reportMissingImports]

    with tempfile.TemporaryDirectory() as folder:
        await run(notebook, Path(folder))
    for cell in notebook.cells:
        # When and how long each cell ran changes with every run.
        cell.metadata.clear()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}
    }
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    asyncio.run(_renew())
