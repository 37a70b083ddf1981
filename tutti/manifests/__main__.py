"""`python -m tutti.manifests`: rewrite deploy/crds and the chart's tables of rights."""

import argparse
import json
from pathlib import Path

from shared.schemas.kubernetes_schemas import DATA_FILE, extracted
from tutti.manifests import crds
from tutti.rights.rules import permissions_file, rights_file, user_roles_file


def main() -> None:
    """Write every file, and remove those of kinds that no longer exist."""
    parser = argparse.ArgumentParser(prog="python -m tutti.manifests", description=__doc__)
    parser.add_argument(
        "--openapi",
        type=Path,
        nargs="+",
        help="first extract Kubernetes' own schemas from these documents of /openapi/v3",
    )
    arguments = parser.parse_args()
    root = Path(__file__).parents[2]
    if arguments.openapi is not None:
        published = [json.loads(path.read_text("utf-8")) for path in arguments.openapi]
        target = root / "shared" / "schemas" / DATA_FILE
        target.write_text(extracted(published), "utf-8")
    deploy = root / "deploy"
    folder = deploy / "crds"
    wanted = crds.files()
    for path in folder.rglob("*.yaml"):
        if str(path.relative_to(folder)) not in wanted:
            path.unlink()
    (folder / crds.OPT_IN_FOLDER).mkdir(parents=True, exist_ok=True)
    for name, text in wanted.items():
        (folder / name).write_text(text, "utf-8")
    files = deploy / "chart" / "files"
    files.mkdir(parents=True, exist_ok=True)
    (files / "rights.yaml").write_text(rights_file(), "utf-8")
    (files / "user-roles.yaml").write_text(user_roles_file(), "utf-8")
    (files / "nats-permissions.yaml").write_text(permissions_file(), "utf-8")
    print(f"{len(wanted)} CRDs in deploy/crds, rights in deploy/chart/files")


if __name__ == "__main__":
    main()
