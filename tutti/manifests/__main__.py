"""`python -m tutti.manifests`: rewrite deploy/crds and the chart's tables of rights."""

import argparse
import json
from pathlib import Path

from tutti.manifests import crds, kubernetes_schemas
from tutti.rights.rules import permissions_file, rights_file
from tutti.rights.user_roles import user_roles_file


def main() -> None:
    """Write every file, and remove those of kinds that no longer exist."""
    parser = argparse.ArgumentParser(prog="python -m tutti.manifests", description=__doc__)
    parser.add_argument(
        "--openapi",
        type=Path,
        help="first extract the schemas of pods from this /openapi/v3/api/v1",
    )
    arguments = parser.parse_args()
    if arguments.openapi is not None:
        kubernetes_schemas.extract(json.loads(arguments.openapi.read_text("utf-8")))
    deploy = Path(__file__).parents[2] / "deploy"
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
