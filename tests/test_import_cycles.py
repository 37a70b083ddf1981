"""No module imports itself through others; imports of types count, too."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from graphlib import CycleError, TopologicalSorter

import grimp

PACKAGES = ("services", "shared", "tutti", "bench")


def cycle_in(imports: Mapping[str, AbstractSet[str]]) -> list[str]:
    """The modules of one cycle, the first one again at its end; empty: there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph(*PACKAGES, exclude_type_checking_imports=False)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert cycle_in(imports) == []


def test_a_cycle_is_found() -> None:
    found = cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}})
    assert sorted(set(found)) == ["b", "c"]
