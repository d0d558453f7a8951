"""``knotwork lsp``: the language server, for editors."""

__all__ = ["lsp"]


def lsp() -> int:
    """Serve an editor over stdin and stdout: diagnostics, completion, hover and the rest, for .lwt, .gasl and .seed.json.

    Editors start this themselves; docs/reference/editors.md says how each is told to.

    Example: knotwork lsp (the command of the server in an editor's settings)
    """
    from .serving.editing import perform

    return perform()
