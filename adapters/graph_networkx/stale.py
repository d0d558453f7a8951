"""The warning about cached data of a graph whose attributes were written directly."""

import warnings


class StaleGraphWarning(UserWarning):
    """Warns that attributes of the graph were written directly, so cached data was wrong."""


def warn_stale() -> None:
    """Warn that cached data differs from the graph."""
    warnings.warn(
        "attributes of the graph were written without NetworkX's methods, so its indexes were outdated and are rebuilt. "
        "Call invalidate() after such writes, or use strict=True",
        StaleGraphWarning,
        stacklevel=2,
    )
