"""A value as lines, in any mode: ``shown`` gives them as they are asked for, so that a hundred thousand rows cost a page."""

from .forms import Lines, shown

__all__ = ["Lines", "shown"]
