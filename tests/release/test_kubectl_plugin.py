"""Which files of Debian's packages the archive of `kubectl tutti` has."""

from pathlib import Path

import pytest

from release.debian import ARCHITECTURES, loader, triplet
from release.kubectl_plugin import _debian_files


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_loader_is_taken_although_a_link_of_another_folder_names_it(
    tmp_path: Path, architecture: str
) -> None:
    """As Debian's libc6 has it: on amd64 in lib64, on arm64 in lib."""
    folder = tmp_path / "lib" / triplet(architecture)
    folder.mkdir(parents=True)
    (tmp_path / loader(architecture)).write_text("loader")
    (folder / "libz.so.1.2.13").write_text("z")
    (folder / "libz.so.1").symlink_to("libz.so.1.2.13")
    relative = Path(triplet(architecture)) / Path(loader(architecture)).name
    (tmp_path / "lib" / relative.name).symlink_to(relative)
    names = {name for name, _ in _debian_files(tmp_path)}
    assert names == {loader(architecture), f"lib/{triplet(architecture)}/libz.so.1"}
