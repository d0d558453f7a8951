"""The keys of the prompt: Enter runs what is whole, Tab completes or mends."""

from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completion, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, completion_is_selected, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from ..reading import is_whole, pieces

__all__ = ["bindings"]

_INDENT = "  "


def bindings() -> KeyBindings:
    """Return them."""
    keys = KeyBindings()

    @keys.add("enter", filter=~is_searching & ~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_ready(buffer.text, buffer.document.is_cursor_at_the_end or not buffer.document.text_after_cursor.strip()):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("enter", filter=~is_searching & completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None  # taken, and not run: one may go on

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("escape", filter=has_completions, eager=True)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add("tab", filter=~has_completions & Condition(_at_indent))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(_INDENT)

    @keys.add("tab", filter=~has_completions & ~Condition(_at_indent))
    def _(event: KeyPressEvent) -> None:
        # At once, not beside the loop as the library does it: what is typed next would come first, and the word stay half.
        buffer = event.current_buffer
        found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        # One that goes on with the word itself is meant before those that only have it somewhere inside.
        further = [each for each in found if each.text.startswith(_typed(buffer.document, each))]
        if len(found) == 1 or len(further) == 1:
            buffer.apply_completion((further or found)[0])
        elif found:
            buffer.insert_text(get_common_complete_suffix(buffer.document, found))
            buffer.start_completion(insert_common_part=False)

    return keys


def _typed(document: Document, completion: Completion) -> str:
    """Return the text before the cursor that the completion replaces."""
    text = document.text_before_cursor
    return text[len(text) + completion.start_position :]


def _at_indent() -> bool:
    """Say whether the cursor stands at the beginning of a line that is not the first: there Tab indents."""
    document = get_app().current_buffer.document
    return document.cursor_position_row > 0 and not document.current_line_before_cursor.strip()


def is_ready(text: str, at_end: bool) -> bool:
    """Say whether Enter runs ``text``: it is whole and the cursor at its end, or two empty lines say that it shall be."""
    if not text.strip():
        return True
    if not at_end:
        return "\n" not in text and _all_whole(text)
    return text.endswith("\n\n") or _all_whole(text)


def _all_whole(text: str) -> bool:
    last = None
    for last in pieces(text):  # noqa: B007 - the last one is what is still written
        pass
    return last is None or is_whole(last.text)
