"""Every variant is filed under a problem, exports its entry point, and says first how it differs."""

from pathlib import Path

import pytest
from first_assignment import KERNELS, VARIANTS

FILES = sorted(VARIANTS.glob("*/*.cu"))


@pytest.mark.parametrize("variant", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_variant_has_the_entry_point_of_its_problem_and_says_what_it_is(variant: Path) -> None:
    problem = KERNELS[variant.parent.name]
    text = variant.read_text()
    assert f'extern "C" void {problem.entry_point}(' in text
    assert text.startswith("// ")


def test_first_lines_differ() -> None:
    first = [(path.parent.name, path.read_text().partition("\n")[0]) for path in FILES]
    assert len(set(first)) == len(first)
