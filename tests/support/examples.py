"""How many examples the long random tests draw."""

from hypothesis import settings

__all__ = ["many", "stride"]


def many(count: int) -> int:
    """Return the number of examples of a long random test: ``count`` in a search for new examples, a fifth of it in other runs.

    Other runs draw the same examples every time (``derandomize``), so most of what they can find, they find in the first ones.
    ``pytest -m slow --hypothesis-profile search`` draws new examples.
    """
    assert settings.default is not None
    return count // 5 if settings.default.derandomize else count


def stride(step: int) -> int:
    """Return the distance between the places that a sweep tries: 1 in a search for new examples, ``step`` in other runs."""
    assert settings.default is not None
    return step if settings.default.derandomize else 1
