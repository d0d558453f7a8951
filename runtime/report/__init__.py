"""A state as one HTML page that explains itself: what was asked, what was done and why, what was found and on what evidence.

``findings`` reads the state, ``words`` says commands in plain English, ``drawing`` draws the graph around the findings, ``page``
puts them together. The page loads nothing and runs nothing; whatever text it shows is escaped.
"""

from .page import render

__all__ = ["render"]
