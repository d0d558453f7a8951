"""What others say of the command line, in our words."""

import pytest
from knotwork.runtime.interfaces.cli.commands import reword


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Invalid value for '--max-steps': Input should be greater than or equal to 1", "--max-steps: must be at least 1"),
        ("Invalid value for '--enough': Input should be less than or equal to 1.0", "--enough: must be at most 1"),
        ("Invalid value for '--limit' / '-n': Input should be a valid integer, unable to parse string as an integer",
         "--limit: must be a whole number"),
        ("Invalid value for '--rate': Input should be a valid number, unable to parse string as a number", "--rate: must be a number"),
        ("Invalid value for '--search': 'deep' is not one of 'greedy', 'beam'.", "--search: 'deep' is not one of 'greedy', 'beam'"),
        ("Missing argument 'GRAPH'.", "Missing argument 'GRAPH'"),
    ],
)  # fmt: skip
def test_option_errors_have_no_words_of_libraries(theirs: str, ours: str) -> None:
    assert reword(theirs) == ours
