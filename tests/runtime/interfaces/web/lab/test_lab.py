"""The Lab page's files: what is served, and what the strict policy asks of them. What the page does is in tests/browser."""

import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed; knotwork[server] has it")

from fastapi import FastAPI
from knotwork.runtime.interfaces.web.lab import FILES, PAGE, packaged_file, router
from starlette.testclient import TestClient
from support.folders import ROOT

STATIC = ROOT / "runtime/interfaces/web/lab/static"
OWN = [name for name in (PAGE, *FILES) if not name.startswith("vendor/")]
SCRIPTS = [name for name in FILES if name.endswith(".js")]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = FastAPI()
    app.include_router(router)
    with TestClient(app) as made:
        yield made


def text(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


class Tags(HTMLParser):
    """Every start tag of the page with its attributes, and the text of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags() -> list[tuple[str, dict[str, str | None]]]:
    parser = Tags()
    parser.feed(text(PAGE))
    return parser.tags


def test_the_page_is_html(client: TestClient) -> None:
    answer = client.get("/lab")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.text == text(PAGE)


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_served_with_its_type(client: TestClient, name: str) -> None:
    kinds = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
    answer = client.get(f"/lab/static/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == kinds.get(Path(name).suffix, "text/plain; charset=utf-8")
    assert answer.content == (STATIC / name).read_bytes()


@pytest.mark.parametrize("path", ["/lab", "/lab/static/lab.css"])
def test_what_a_browser_has_it_is_not_sent_again(client: TestClient, path: str) -> None:
    first = client.get(path)
    assert first.headers["cache-control"] == "no-cache"
    tag = first.headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = client.get(path, headers={"if-none-match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag), known
    assert client.get(path, headers={"if-none-match": '"other"'}).status_code == 200


def test_a_head_request_has_no_body(client: TestClient) -> None:
    answer = client.head("/lab")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) == len(text(PAGE).encode())


@pytest.mark.parametrize(
    "name", ["", "index.html", "nothing.js", "../serving.py", "%2e%2e/serving.py", "js", "/etc/passwd"]
)
def test_nothing_else_is_there(client: TestClient, name: str) -> None:
    answer = client.get(f"/lab/static/{name}")
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_only_listed_files_can_be_read() -> None:
    with pytest.raises(KeyError):
        packaged_file("../serving.py")


def test_the_list_is_the_folder() -> None:
    found = {str(path.relative_to(STATIC)) for path in STATIC.rglob("*") if path.is_file()}
    assert found == {PAGE, *FILES}


@pytest.mark.parametrize("name", (PAGE, *FILES))
def test_every_file_is_packaged(name: str) -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    patterns = setuptools["package-data"]["knotwork.runtime.interfaces.web.lab"]
    depth = f"static/{name}".count("/")
    assert any(fnmatch(f"static/{name}", pattern) and pattern.count("/") == depth for pattern in patterns)


def test_the_page_has_no_inline_script_or_style() -> None:
    for tag, attributes in tags():
        assert tag not in ("style", "base", "iframe", "object", "embed")
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert tag != "script" or "src" in attributes
    assert re.search(r"<script[^>]*>[^<]", text(PAGE)) is None


@pytest.mark.parametrize("name", OWN)
def test_no_file_names_another_site(name: str) -> None:
    allowed = ("http://www.w3.org/2000/svg", "https://html.spec.whatwg.org/")  # a namespace, and a comment
    found = re.findall(r"(?:https?:)?//[a-z0-9][\w.-]*\.[a-z]{2,}[^\s\"')]*", text(name))
    assert [url for url in found if not url.startswith(allowed)] == []


def test_what_the_page_loads_is_in_the_list() -> None:
    named = [attributes.get("src") or attributes.get("href") for tag, attributes in tags() if tag in ("script", "link")]
    assert [name for name in named if name is None or name.removeprefix("lab/static/") not in FILES] == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_a_module_imports_is_in_the_list(name: str) -> None:
    for target in re.findall(r"^(?:import|export)\b[^;]*?from ['\"]([^'\"]+)['\"]", text(name), re.MULTILINE):
        assert target.startswith("."), target
        path = (STATIC / name).parent / target
        assert str(path.resolve().relative_to(STATIC)) in FILES


@pytest.mark.parametrize("name", [name for name in OWN if name.endswith(".js")])
def test_texts_never_become_markup_or_code(name: str) -> None:
    ways = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|\.style\b|cssText"
    )
    code = r"\beval\b|new Function\b|setTimeout\(['\"]"
    assert re.findall(f"{ways}|{code}", text(name)) == []


@pytest.mark.parametrize("name", [name for name in OWN if name.endswith(".js")])
def test_a_module_has_one_subject(name: str) -> None:
    assert text(name).startswith("// ")
    assert len(text(name).splitlines()) <= 300


def test_every_field_has_a_label() -> None:
    labelled = {attributes["for"] for tag, attributes in tags() if tag == "label"}
    fields = {attributes["id"] for tag, attributes in tags() if tag in ("input", "textarea", "select")}
    assert fields == labelled


def test_what_ids_point_to_is_there() -> None:
    ids = [attributes["id"] for _, attributes in tags() if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in tags():
        for name in ("for", "aria-labelledby", "aria-describedby", "aria-controls"):
            assert set((attributes.get(name) or "").split()) <= set(ids)


def test_the_vendored_library_says_where_it_is_from() -> None:
    origin = text("vendor/jsdiff/ORIGIN.txt")
    assert re.search(r"jsdiff \d+\.\d+\.\d+.*BSD-3-Clause", origin)
    assert "BSD 3-Clause License" in text("vendor/jsdiff/LICENSE")


def test_nothing_of_the_page_is_in_the_openapi_document(client: TestClient) -> None:
    assert client.get("/openapi.json").json()["paths"] == {}
