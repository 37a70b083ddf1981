"""The policy that docs/contributing/policy.md adds is one file, and works."""

from tests.extension_points.product_copy import ProductCopy


def test_a_policy_is_one_file(product: ProductCopy) -> None:
    added = product.add_files_of_page("docs/contributing/policy.md")
    assert [path for path in added if not path.startswith("tests/")] == [
        "services/gang_planner/core/policies/smallest_first.py"
    ]
    tests = (
        "tests/scenarios/test_scenarios.py",
        "tests/services/gang_planner/core/test_policies.py",
    )
    report = product.run_tests(tests, only="smallest")
    # Its scenario, and what must hold for every policy: its name, and bounded scores.
    assert "3 passed" in report
