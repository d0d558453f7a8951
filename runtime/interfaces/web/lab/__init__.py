"""The Lab page: one page in the browser that asks for iterative answers and shows them as they come."""

from functools import cache
from hashlib import sha256
from importlib.resources import files

from attrs import frozen
from fastapi import APIRouter, Request, Response

__all__ = ["FILES", "PAGE", "packaged", "router"]

# Serves the Lab page and its files: a fixed list of packaged files, each with its type and an entity tag.
# Nothing is looked up on disk by a path that a client sends: a name that is not in the list is not there.

PAGE = "index.html"
FILES = (
    "icon.svg",
    "lab.css",
    "js/api.js",
    "js/changes.js",
    "js/chart.js",
    "js/dom.js",
    "js/examples.js",
    "js/form.js",
    "js/history.js",
    "js/key.js",
    "js/main.js",
    "js/outcome.js",
    "js/progress.js",
    "js/rounds.js",
    "js/run.js",
    "js/sse.js",
    "js/words.js",
    "vendor/jsdiff/LICENSE",
    "vendor/jsdiff/ORIGIN.txt",
    "vendor/jsdiff/diff/base.js",
    "vendor/jsdiff/diff/word.js",
    "vendor/jsdiff/util/string.js",
)
"""Every file of the page but the page itself, by its path under ``static``."""

_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_TEXT = "text/plain; charset=utf-8"

_KEPT = {"cache-control": "no-cache"}
"""Browsers ask each time, and are told 304 while the file is the same; what else they are told every response says."""

router = APIRouter(include_in_schema=False)


@frozen
class Packaged:
    """A file as it is sent: its bytes, its media type, and its entity tag with the quotes."""

    content: bytes
    media_type: str
    etag: str


@cache
def packaged(name: str) -> Packaged:
    """Return a file of the page. ``name`` is ``PAGE`` or one of ``FILES``. Raises ``KeyError`` for any other."""
    if name != PAGE and name not in FILES:
        raise KeyError(name)
    content = files(__package__).joinpath("static", *name.split("/")).read_bytes()
    return Packaged(content, _TYPES.get(name.rpartition(".")[2], _TEXT), f'"{sha256(content).hexdigest()[:32]}"')


def _has(request: Request, etag: str) -> bool:
    """Tell whether the client says that it has what the tag names (RFC 9110, section 13.1.2)."""
    tags = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    return etag in tags or "*" in tags


def _sent(request: Request, name: str) -> Response:
    file = packaged(name)
    headers = _KEPT | {"etag": file.etag}
    if _has(request, file.etag):
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


@router.api_route("/lab", methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    """Send the page."""
    return _sent(request, PAGE)


@router.api_route("/lab/static/{name:path}", methods=["GET", "HEAD"])
async def static(request: Request, name: str) -> Response:
    """Send a file of the page."""
    if name not in FILES:
        return Response("there is no such file\n", status_code=404, media_type=_TEXT)
    return _sent(request, name)
