"""The dialect that docs/contributing/dialect.md adds is one file, and works.

`tests/shared/dialects/test_added_dialect.py` follows its pods to a decision of the planner.
"""

from tests.extension_points.product_copy import ProductCopy


def test_a_dialect_is_one_file(product: ProductCopy) -> None:
    added = product.add_files_of_page("docs/contributing/dialect.md")
    assert [path for path in added if not path.startswith("tests/")] == [
        "shared/dialects/example.py"
    ]
    report = product.run_tests(["tests/shared/dialects/test_example.py"])
    assert "3 passed" in report
