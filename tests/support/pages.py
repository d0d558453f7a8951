"""Reads a page as a browser does, as far as tests want to know: texts, elements, attributes, and whether all that opens is closed."""

from html.parser import HTMLParser

__all__ = ["Page"]

_VOID = {"meta", "br"}


class Page(HTMLParser):
    """A page. ``text`` is what a reader sees, ``tags`` and ``attributes`` (element, name, value) are all there are."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All that a reader sees."""
        return " ".join(self.texts)
