"""The table of docs/dialects.md, made from the cases and the features in tests/dialects."""

from collections.abc import Iterable, Iterator
from typing import Final

from tests.dialects.cases import Case
from tests.dialects.features import Features, read_cases, read_features
from tests.documents.reference import table_of

#: Cells by answer; "none": the API does not have the feature.
_CELLS: Final = {"partly": "partly", "no": "no", "none": "-"}


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
        for dialect in features.dialects:
            gap = features.gaps.get(dialect, {}).get(feature)
            if gap is None:
                assert (dialect, feature) in proved, f"{dialect}: {feature}: nothing is known"
            cells.append("yes" if gap is None else _CELLS[gap.answer])
        yield title, *cells


def _notes(features: Features, cases: Iterable[Case]) -> Iterator[str]:
    for dialect, column in features.dialects.items():
        own = [case for case in cases if case.dialect == dialect]
        yield f"\n### {column.title}\n\n{column.about}. "
        yield f"{len(own)} cases in `tests/dialects/{dialect}`.\n"
        for cluster, why in column.not_on.items():
            yield f"They are not played on the {cluster} cluster: {why}.\n"
        yield "\n"
        for feature, gap in features.gaps.get(dialect, {}).items():
            yield f"* {features.features[feature]} ({_CELLS[gap.answer]}): {gap.why}\n"
        for case in own:
            for cluster, why in case.not_on.items():
                if cluster not in column.not_on:
                    yield f"* “{case.title}” is not played on the {cluster} cluster: {why}\n"
