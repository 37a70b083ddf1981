"""The features that the APIs of gangs have or lack: the rows and columns of docs/dialects.md.

A feature that cases prove is "yes". Where `features.yaml` gives a reason as well, it is "partly";
without a case, the reason's answer counts.
"""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec
import yaml

from tests.dialects.cases import FOLDER, Case, read_folder

FILE: Final = FOLDER / "features.yaml"


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Column(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An API.

    Attributes:
        title: Its name in the table.
        about: What it is, for a note below the table.
        apis: The versions that its cases are played in, if there are several.
        not_on: Cluster -> why none of its cases is played there.
    """

    title: str
    about: str
    apis: tuple[str, ...] = ()
    not_on: dict[str, str] = {}


class Gap(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a feature is not simply there: `none` means that the API itself does not have it."""

    answer: Literal["partly", "no", "none"]
    why: str


class Features(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file.

    Attributes:
        dialects: Columns by folder.
        features: Rows: key -> title.
        gaps: Dialect -> feature -> reason.
    """

    dialects: dict[str, Column]
    features: dict[str, str]
    gaps: dict[str, dict[str, Gap]] = {}


def read_features() -> Features:
    """Read the file. Raises msgspec.ValidationError."""
    return msgspec.convert(yaml.safe_load(FILE.read_text()), Features)


def read_cases(features: Features) -> tuple[Case, ...]:
    """The cases of all dialects. Raises CaseError."""
    return tuple(
        msgspec.structs.replace(case, not_on={**column.not_on, **case.not_on})
        for name, column in features.dialects.items()
        for case in read_folder(FOLDER / name, column.apis)
    )


def objections(features: Features, cases: Iterable[Case]) -> list[str]:
    """What is wrong with the file and the cases together; [] when nothing is."""
    found: list[str] = []
    proved: set[tuple[str, str]] = set()
    for case in cases:
        if case.feature not in features.features:
            found.append(f"{case.name}: there is no feature {case.feature!r}")
        proved.add((case.dialect, case.feature))
    for dialect, gaps in features.gaps.items():
        if dialect not in features.dialects:
            found.append(f"gaps: there is no dialect {dialect!r}")
        found += [
            f"gaps: {dialect}: there is no feature {feature!r}"
            for feature in gaps.keys() - features.features.keys()
        ]
    for dialect in features.dialects:
        for feature in features.features:
            gap = features.gaps.get(dialect, {}).get(feature)
            has_case = (dialect, feature) in proved
            if gap is None and not has_case:
                found.append(f"{dialect}: {feature}: neither a case nor a reason")
            if gap is not None and gap.answer != "partly" and has_case:
                found.append(f"{dialect}: {feature}: a case, and the answer {gap.answer!r}")
    return found
