"""Who gets in: keys, hosts, origins, and what is open to all."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from knotwork.adapters.addresses import is_loopback
from knotwork.runtime.interfaces.http.access import add_key
from knotwork.runtime.interfaces.web.web_models import ServerSettings
from support.web import application, settings_in

SCRIPT = {"script": '(final)=CONST("x")'}


def ask(settings: ServerSettings, method: str, path: str | httpx2.URL, **options: Any) -> Any:
    async def asking() -> Any:
        async with application(settings) as client:
            return await client.request(method, path, **options)

    return asyncio.run(asking())


@pytest.fixture
def keyed(tmp_path: Path) -> tuple[ServerSettings, str]:
    settings = settings_in(tmp_path)
    return settings, add_key(settings.keys, "ada")


@pytest.mark.parametrize(
    "shown",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer kw_wrong",
        "Basic {key}",
        "{key}",
        "Bearer {key}x",
        "Bearer {key} {key}",
        "Bearer é",
    ],
)
def test_without_the_key_there_is_nothing(keyed: tuple[ServerSettings, str], shown: str | None) -> None:
    settings, key = keyed
    headers = {} if shown is None else {"Authorization": shown.format(key=key).encode("utf-8")}
    answer = ask(settings, "GET", "/lab/about", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] in ("urn:knotwork:problem:key-needed", "urn:knotwork:problem:wrong-key")
    assert key not in answer.text


@pytest.mark.parametrize("shown", ["Bearer {key}", "bearer {key}", "BEARER  {key}"])
def test_the_key_opens(keyed: tuple[ServerSettings, str], shown: str) -> None:
    settings, key = keyed
    assert ask(settings, "GET", "/lab/about", headers={"Authorization": shown.format(key=key)}).status_code == 200


def test_a_wrong_key_is_told_before_the_body_is_taken(keyed: tuple[ServerSettings, str]) -> None:
    settings, _ = keyed

    async def bomb() -> Any:
        raise AssertionError("the body was read")
        yield b""

    answer = ask(settings, "POST", "/scripts/run", content=bomb(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 401


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/healthz", "/openapi.json"])
def test_some_addresses_need_no_key(keyed: tuple[ServerSettings, str], path: str) -> None:
    assert ask(keyed[0], "GET", path).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/lab/runs",
        "/lab/runs/x",
        "/scripts/run",
        "/nothing",
        "/lab/static",
        "/healthz/x",
        "/healthz/",
        "/lab/../lab/runs",
        "/LAB/about",
    ],
)
def test_every_other_address_needs_one_also_where_there_is_nothing(
    keyed: tuple[ServerSettings, str], path: str
) -> None:
    assert ask(keyed[0], "GET", path).status_code == 401


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST:9", "[::1]", "[::1]:8000", "127.8.8.8"]
)
def test_without_keys_the_server_answers_under_this_machines_names(tmp_path: Path, host: str) -> None:
    answer = ask(settings_in(tmp_path), "GET", "/lab/about", headers={"Host": host})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", "", "0.0.0.0", "192.168.0.1",
        "[::2]", "127.0.0.1@evil.example", "[", "[::1", "2130706433",
        "localhost:80@evil.example", "localhost:8000:80", "localhost:x", "localhost/", "[::1]x", "[::1]:80@evil.example",
    ],
)  # fmt: skip
def test_without_keys_a_foreign_host_is_refused_everywhere(tmp_path: Path, host: str) -> None:
    settings = settings_in(tmp_path)
    for path in ("/lab/about", "/healthz", "/openapi.json", "/lab"):
        answer = ask(settings, "GET", path, headers={"Host": host})
        assert answer.status_code == 403
        assert answer.json()["type"] == "urn:knotwork:problem:foreign-host"


PROXIES_ADD = [
    {"X-Forwarded-For": "203.0.113.9"}, {"x-real-ip": "203.0.113.9"}, {"Forwarded": "for=203.0.113.9"}, {"Via": "1.1 caddy"},
    {"X-Forwarded-Proto": "https"}, {"X-Forwarded-For": "127.0.0.1"}, {"CF-Connecting-IP": "203.0.113.9"},
]  # fmt: skip


@pytest.mark.parametrize("added", PROXIES_ADD)
def test_without_keys_a_request_through_a_proxy_is_refused_everywhere(tmp_path: Path, added: dict[str, str]) -> None:
    settings = settings_in(tmp_path)
    for method, path in (("GET", "/lab/about"), ("GET", "/healthz"), ("POST", "/scripts/run")):
        answer = ask(settings, method, path, json=SCRIPT, headers=added)
        assert answer.status_code == 403
        assert answer.json()["type"] == "urn:knotwork:problem:forwarded-request"
        assert "--add-key" in answer.json()["detail"]


@pytest.mark.parametrize("added", PROXIES_ADD)
def test_with_keys_a_request_may_come_through_a_proxy(keyed: tuple[ServerSettings, str], added: dict[str, str]) -> None:
    settings, key = keyed
    assert ask(settings, "GET", "/lab/about", headers=added).status_code == 401
    headers = {**added, "Authorization": f"Bearer {key}"}
    assert ask(settings, "GET", "/lab/about", headers=headers).status_code == 200


def test_with_keys_any_host_is_fine(keyed: tuple[ServerSettings, str]) -> None:
    settings, key = keyed
    headers = {"Host": "lab.example.org", "Authorization": f"Bearer {key}", "Origin": "https://lab.example.org"}
    assert ask(settings, "POST", "/scripts/run", json=SCRIPT, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "", "http://127.0.0.1:9", "http://localhost", "file://", "http://[", "127.0.0.1"],
)
def test_without_keys_pages_of_other_sites_may_not_ask(tmp_path: Path, origin: str) -> None:
    settings = settings_in(tmp_path)
    answer = ask(settings, "POST", "/scripts/run", json=SCRIPT, headers={"Origin": origin})
    assert answer.status_code == 403
    assert answer.json()["type"] == "urn:knotwork:problem:foreign-origin"
    assert "access-control-allow-origin" not in answer.headers


def test_the_servers_own_page_may_ask(tmp_path: Path) -> None:
    answer = ask(settings_in(tmp_path), "POST", "/scripts/run", json=SCRIPT, headers={"Origin": "http://127.0.0.1"})
    assert answer.status_code == 200


def test_other_sites_may_not_read(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    read = ask(settings, "GET", "/lab/about", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in read.headers
    before = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    preflight = ask(settings, "OPTIONS", "/scripts/run", headers=before)
    assert preflight.status_code == 405
    assert "access-control-allow-origin" not in preflight.headers


def test_cors_lets_in_the_named_origin_and_no_other(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, cors=("https://lab.example.org",))
    key = add_key(settings.keys, "ada")
    for origin, allowed in (("https://lab.example.org", True), ("https://evil.example", False)):
        headers = {
            "Origin": origin,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization",
        }
        preflight = ask(settings, "OPTIONS", "/scripts/run", headers=headers)
        assert (preflight.status_code == 200) is allowed
        assert ("access-control-allow-origin" in preflight.headers) is allowed
        assert "access-control-allow-credentials" not in preflight.headers
        answer = ask(
            settings, "POST", "/scripts/run", json=SCRIPT, headers={"Origin": origin, "Authorization": f"Bearer {key}"}
        )
        assert answer.headers.get("access-control-allow-origin") == (origin if allowed else None)
        assert answer.headers["access-control-expose-headers"] == "Location, Retry-After"
        wrong = ask(settings, "GET", "/lab/about", headers={"Origin": origin})
        assert wrong.status_code == 401
        assert (wrong.headers.get("access-control-allow-origin") == origin) is allowed  # so that the page can say why


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/healthz", "/openapi.json", "/lab", "/lab/", "/lab/static/lab.css"])
def test_what_is_open_to_all_takes_no_bodies(keyed: tuple[ServerSettings, str], path: str) -> None:
    settings, key = keyed
    assert ask(settings, "GET", path).status_code < 400
    assert ask(settings, "POST", path, json=SCRIPT).status_code == 401
    assert ask(settings, "POST", path, json=SCRIPT, headers={"Authorization": f"Bearer {key}"}).status_code == 405


ODD_WAYS = (
    "//lab/runs", "/lab//runs", "/lab/runs/", "/Lab/runs", "/LAB/RUNS", "/lab/static/../runs", "/lab/static/..%2fruns",
    "/lab/%72uns", "/lab/runs%2f", "/lab;/runs", "/healthz/../lab/runs", "/healthz/", "/lab/./runs", "/lab/runs?x=/healthz",
    "/%2e%2e/lab/runs", "/lab%2fruns",
)  # fmt: skip


async def test_no_way_to_write_an_address_leads_past_the_door(keyed: tuple[ServerSettings, str]) -> None:
    async with application(keyed[0]) as client:
        for path in ODD_WAYS:
            url = httpx2.URL("http://127.0.0.1").copy_with(raw_path=path.encode())
            for method in ("GET", "HEAD", "OPTIONS", "POST", "DELETE", "get"):
                answer = await client.request(method, url)
                assert answer.status_code in (401, 404, 405), (method, path)
                assert "runs" not in answer.text


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("localhost", True), ("127.0.0.1", True), ("::1", True), ("[::1]", True),
        ("0.0.0.0", False), ("::", False), ("", False), ("example.org", False),
    ],
)  # fmt: skip
def test_what_is_this_machines_own(host: str, own: bool) -> None:
    assert is_loopback(host) is own
