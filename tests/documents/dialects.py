"""The table of docs/dialects.md, made from the cases and the features in tests/dialects, and the
fields that dialects ignore.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from shared.dialects.discovery import dialect
from tests.dialects.cases import Case
from tests.dialects.features import Features, read_cases, read_features
from tests.documents.reference import table_of

#: Cells by answer; "none": the API does not have the feature.
_CELLS: Final = {"partly": "partly", "no": "no", "none": "-"}
#: Folder of cases -> dialects, where they have other names.
_DIALECTS: Final = {
    "kubernetes": ("kubernetes", "kubernetes_composite"),
    "kube_batch": ("incubator",),
    "workloads": (),
}


def dialects_table() -> str:
    """The table, and below it the reasons for each API."""
    features = read_features()
    cases = read_cases(features)
    head = ("feature", *(column.title for column in features.dialects.values()))
    return table_of(head, _rows(features, cases)) + "".join(_notes(features, cases))


def _rows(features: Features, cases: Iterable[Case]) -> Iterator[tuple[str, ...]]:
    proved = {(case.dialect, case.feature) for case in cases}
    for feature, title in features.features.items():
        cells: list[str] = []
        for folder in features.dialects:
            gap = features.gaps.get(folder, {}).get(feature)
            if gap is None:
                assert (folder, feature) in proved, f"{folder}: {feature}: nothing is known"
            cells.append("yes" if gap is None else _CELLS[gap.answer])
        yield title, *cells


def _notes(features: Features, cases: Iterable[Case]) -> Iterator[str]:
    for folder, column in features.dialects.items():
        own = [case for case in cases if case.dialect == folder]
        yield f"\n### {column.title}\n\n{column.about}. "
        yield f"{len(own)} cases in `tests/dialects/{folder}`.\n"
        for cluster, why in column.not_on.items():
            yield f"They are not played on the {cluster} cluster: {why}.\n"
        yield "\n"
        for feature, gap in features.gaps.get(folder, {}).items():
            yield f"* {features.features[feature]} ({_CELLS[gap.answer]}): {gap.why}\n"
        for case in own:
            for cluster, why in case.not_on.items():
                if cluster not in column.not_on:
                    yield f"* “{case.title}” is not played on the {cluster} cluster: {why}\n"
        yield from _ignored(_DIALECTS.get(folder, (folder,)))


def _ignored(names: Iterable[str]) -> Iterator[str]:
    """What `tutti explain-dialect` prints of a manifest that sets these fields."""
    paths: dict[tuple[str, str], list[str]] = {}
    for name in names:
        for field in dialect(name).ignored:
            paths.setdefault((field.kind, field.because), []).append(f"`{field.path}`")
    for (kind, because), found in paths.items():
        yield f"* {kind}: {', '.join(found)} (ignored): {because}\n"
