"""Drawings in GraphML, as yEd and the libraries of yFiles write them: labels, positions and shapes."""

from typing import Any

from attrs import define, field

from .xml_elements import Element, local

_WRAPPERS = frozenset({"List", "ProxyAutoBoundsNode", "Resources", "SharedData"})


@define
class Drawing:
    """What a drawing says about its node or edge. ``unread`` are the names of its other parts."""

    values: dict[str, Any] = field(factory=dict)
    labels: list[str] = field(factory=list)
    unread: dict[str, None] = field(factory=dict)

    @classmethod
    def of(cls, data: Element) -> "Drawing":
        """Return the drawing in a <data> element."""
        drawing = cls()
        for child in data.children:
            drawing._add(child)
        if drawing.labels:
            drawing.values = {"label": drawing.labels[0], **drawing.values}
        if len(drawing.labels) > 1:
            drawing.values["labels"] = drawing.labels
        return drawing

    def _add(self, element: Element) -> None:
        attributes = element.attributes
        match element.name:
            case "NodeLabel" | "EdgeLabel":
                self._add_label(element.own_text)
                self._add_unread(element)
            case "Label":
                texts = [child.text for child in element.children if child.name in ("Label.Text", "Text")]
                self._add_label(attributes.get("Text", "".join(texts)))
                self._add_unread(element)
            case "Realizers":
                # A group has a realizer per state (open, closed); only one state is drawn.
                states = element.children
                active = attributes.get("active", "0")
                at = int(active) if active.isdecimal() and len(active) < 5 and int(active) < len(states) else 0
                for state in states[at : at + 1]:
                    self._add(state)
                if len(states) > 1:
                    self.unread["inactive states of groups"] = None
            case "Geometry" | "RectD":
                for axis in ("x", "y"):
                    if (written := attributes.get(axis, attributes.get(axis.upper()))) is not None:
                        self.values.setdefault(axis, _number(written))
                self.unread.update(dict.fromkeys(name.lower() for name in attributes if name.lower() not in ("x", "y")))
            case "Shape":
                if "type" in attributes:
                    self.values.setdefault("shape_type", attributes["type"])
            case name:
                if "configuration" in attributes:
                    self.values.setdefault("shape_type", attributes["configuration"])
                if name not in _WRAPPERS and (set(attributes) - {"configuration"} or element.own_text.strip()):
                    self.unread[name] = None
                for child in element.children:
                    self._add(child)

    def _add_label(self, text: str) -> None:
        # The text is followed by elements, which the file indents. Blanks without a line break are part of the label.
        before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        text = text.lstrip() if "\n" in before else text
        text = text.rstrip() if "\n" in after else text
        if text.strip():
            self.labels.append(text)

    def _add_unread(self, label: Element) -> None:
        if any(local(name) not in ("Text", "hasText") for name in label.attributes):
            self.unread["places and fonts of labels"] = None


def _number(written: str) -> float | str:
    try:
        return float(written)
    except ValueError:
        return written
