"""The filter that docs/contributing/filter.md adds is one file, and works."""

from tests.extension_points.product_copy import ProductCopy


def test_a_filter_is_one_file(product: ProductCopy) -> None:
    added = product.add_files_of_page("docs/contributing/filter.md")
    assert [path for path in added if not path.startswith("tests/")] == [
        "services/gang_planner/core/constraints/filters/node_maintenance.py"
    ]
    report = product.run_tests(["tests/scenarios/test_scenarios.py"], only="maintenance")
    assert "3 passed" in report
