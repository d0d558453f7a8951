"""The Lab page: a web page that requests iterative answers and shows their iterations as they finish."""

from functools import cache
from hashlib import sha256
from importlib.resources import files

from attrs import frozen
from fastapi import APIRouter, Request, Response

__all__ = ["FILES", "PAGE", "packaged_file", "router"]

# Serves the Lab page and its files: a fixed list of packaged files, each with its media type and an entity tag. A path from a
# client is only looked up in this list; it is never used to open a file.

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
"""The paths, relative to ``static``, of all files of the page except the page itself."""

_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_TEXT = "text/plain; charset=utf-8"

_KEPT = {"cache-control": "no-cache"}
"""Makes browsers request a file each time; the response is 304 while the file is unchanged."""

router = APIRouter(include_in_schema=False)


@frozen
class Packaged:
    """A file to send: its bytes, its media type, and its entity tag including the quotes."""

    content: bytes
    media_type: str
    etag: str


@cache
def packaged_file(name: str) -> Packaged:
    """Return a file of the page. ``name`` is ``PAGE`` or one of ``FILES``. Raises ``KeyError`` for any other name."""
    if name != PAGE and name not in FILES:
        raise KeyError(name)
    content = files(__package__).joinpath("static", *name.split("/")).read_bytes()
    return Packaged(content, _TYPES.get(name.rpartition(".")[2], _TEXT), f'"{sha256(content).hexdigest()[:32]}"')


def _sent(request: Request, name: str) -> Response:
    file = packaged_file(name)
    headers = _KEPT | {"etag": file.etag}
    known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
    if file.etag in known or "*" in known:  # RFC 9110, section 13.1.2
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
        return Response("unknown file\n", status_code=404, media_type=_TEXT)
    return _sent(request, name)
