"""Where our CRDs are: shipped in the wheel, or in the checkout's deploy/crds."""

from pathlib import Path


def crds_folder() -> Path:
    """The folder with their manifests. Raises FileNotFoundError when they were not shipped."""
    here = Path(__file__).parent
    for folder in (here / "crds", here.parent / "deploy" / "crds"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError("the CRDs were not shipped with this installation")
