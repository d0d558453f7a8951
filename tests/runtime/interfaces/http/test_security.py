"""What somebody who means harm sends: nothing leaks, nothing falls over."""

import asyncio
import contextlib
import logging
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from knotwork.runtime.api.server_runs import Model, RunLimits
from knotwork.runtime.interfaces.http.access import add_key
from knotwork.runtime.interfaces.http.middleware import POLICY
from support.command import cassette
from support.web import Address, application, served_app, settings_in


def ask(settings: Any, method: str, path: str, key: str = "", **options: Any) -> Any:
    async def asking() -> Any:
        async with application(settings, key) as client:
            return await client.request(method, path, **options)

    return asyncio.run(asking())


def raw(at: Address, sent: bytes, patience: float = 10.0) -> bytes:
    """Send bytes and return what comes until the server closes, or nothing comes any more."""
    host, port = at.url.removeprefix("http://").split(":")
    got = b""
    with socket.create_connection((host, int(port)), timeout=patience) as connection:
        with contextlib.suppress(ConnectionError):  # it may have closed before all was sent
            connection.sendall(sent)
        try:
            while piece := connection.recv(65536):
                got += piece
        except (TimeoutError, ConnectionResetError):
            pass
    return got


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/openapi.json", "/lab", "/lab/about", "/nothing", "/scripts/run", "/lab/static/x"]
)
def test_every_answer_tells_browsers_to_be_strict(tmp_path: Path, path: str) -> None:
    headers = ask(settings_in(tmp_path), "GET", path).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    for word in ("unsafe", "*", "http:", "https:"):
        assert word not in policy
    trusted = ("require-trusted-types-for 'script'", "trusted-types 'none'")
    wanted = ("base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", *trusted)
    for word in wanted:
        assert word in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] in ("no-store", "no-cache")
    assert "server" not in headers
    assert "default-src 'none'" in POLICY


@pytest.mark.parametrize(
    "path",
    [
        "/lab/static/../serving.py", "/lab/static/..%2fserving.py", "/lab/static/%2e%2e/serving.py", "/lab/static//etc/passwd",
        "/lab/static/%2fetc%2fpasswd", "/lab/static/..\\serving.py", "/lab/static/js/../../serving.py", "/lab/static/x%00.js",
        "/lab/static/....//serving.py", "/lab/static/index.html/..", "/lab/static/", "/lab/static/%c0%ae%c0%ae/serving.py",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_pages_files(tmp_path: Path, path: str) -> None:
    async def asking() -> list[Any]:
        """Ask with the path as it is; clients would tidy it up."""
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        async with application(settings_in(tmp_path)) as client:
            from urllib.parse import unquote

            scope = {
                "type": "http", "method": "GET", "path": unquote(path), "raw_path": path.encode(), "query_string": b"",
                "headers": [(b"host", b"localhost")], "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 1),
                "client": ("127.0.0.1", 2), "root_path": "",
            }  # fmt: skip
            await client.app(scope, receive, send)
        return sent

    start, *bodies = asyncio.run(asking())
    assert start["status"] == 404
    assert b"import" not in b"".join(body["body"] for body in bodies)


@pytest.mark.slow
def test_keys_and_addresses_get_into_no_answer(tmp_path: Path) -> None:
    """The server's own key for its model, the clients' key, specs, paths: nobody who asks sees one."""
    settings = settings_in(tmp_path)
    key, other = add_key(settings.keys, "ada"), add_key(settings.keys, "bob")
    address = "http://127.0.0.1:9/v1"
    once = RunLimits(max_calls=1)  # a second try would come after a pause
    settings = evolve(settings, models=(Model("m", f"{address}#inner"),), run=once)
    seen = []

    async def asking() -> None:
        async with application(settings, key) as client:
            for method, path, body in (
                ("GET", "/lab/about", None), ("GET", "/openapi.json", None), ("GET", "/healthz", None), ("GET", "/lab/runs", None),
                ("POST", "/scripts/run", {"script": '(a)=LLM("x", retries=0, timeout=0.5)'}), ("POST", "/scripts/run", {"script": "("}),
                ("POST", "/scripts/run", {"script": "(", "model": "x"}), ("GET", "/nothing", None),
                ("POST", "/lab/generate-answer", {"instruct": "x", "resp_format": "", "eval_crit": "y", "iter_max": 1}),
            ):  # fmt: skip
                seen.append((await client.request(method, path, json=body, timeout=60)).text)

    asyncio.run(asking())
    for text in seen:
        for secret in (key, other, key[3:], str(tmp_path), address, "127.0.0.1:9", "inner"):
            assert secret not in text, text


def test_keys_get_into_no_log_and_no_history(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = settings_in(tmp_path, log=True)
    key = add_key(settings.keys, "ada")
    asked = {"instruct": "x", "resp_format": "", "eval_crit": "", "judges": 0, "checks": ["words:1..9"], "iter_max": 1}
    with caplog.at_level(logging.DEBUG):
        ask(settings, "POST", "/lab/generate-answer", key, json=asked)
        ask(settings, "GET", f"/lab/about?key={key}", key)
        ask(settings, "GET", "/lab/about", key + "x")
    out, err = capfd.readouterr()
    assert "POST /lab/generate-answer" in err and " ada\n" in err
    assert "GET /lab/about 401" in err
    kept = b"".join(
        file.read_bytes() for file in tmp_path.rglob("*") if file.is_file() and not file.name.startswith("answers")
    )
    ours = [
        record.getMessage() for record in caplog.records if record.name.startswith(("knotwork", "uvicorn", "fastapi"))
    ]
    for text in (out, err, "\n".join(ours), kept.decode("latin-1")):
        assert key[3:] not in text


def test_a_log_line_can_not_be_forged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings = settings_in(tmp_path, log=True)
    ask(settings, "GET", "/lab%0aGET%20/forged%20200%1b[31m" + "x" * 1000)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "\\nGET /forged" in lines[0] and "\x1b" not in lines[0]
    assert len(lines[0]) < 400


@pytest.fixture(scope="module")
def hardened(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("server")
    with served_app(folder, llm=cassette(folder / "c.jsonl", {"": "an answer"})) as at:
        yield at
        with at.client() as client:  # whatever was sent: it is still there, and has said nothing of insides
            assert client.get("/healthz").json() == {"status": "ok"}
        assert not [line for line in at.said if "Traceback" in line or "internal" in line], at.said


HOST = b"Host: localhost\r\n"
GET, POST, BAD = b"GET /healthz HTTP/1.1\r\n" + HOST, b"POST /scripts/run HTTP/1.1\r\n" + HOST, b"400"
JSON, CLOSE = b"Content-Type: application/json\r\n", b"Connection: close\r\n"
MANY = b"".join(b"X-%d: y\r\n" % number for number in range(1000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (GET + MANY + CLOSE + b"\r\n", b"200"),
        (GET + b"X: " + b"y" * 3_000_000 + b"\r\n\r\n", BAD),
        (b"GET /" + b"x" * 3_000_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", BAD),
        (b"GET /healthz HTTP/1.0\r\n\r\n", b"200"),
        (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", b"403"),
        (POST + CLOSE + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"4"),
        (POST + b"Content-Length: -1\r\n\r\n", BAD),
        (POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", BAD),
        (POST + b"Content-Length: 2000000\r\n\r\n", b"413"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500, BAD),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", BAD),
        (GET + b"Upgrade: websocket\r\nConnection: Upgrade, close\r\nSec-WebSocket-Key: x\r\n\r\n", b"200"),
        (b"TRACE /healthz HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n", b"405"),
        (b"GET /%ff%fe HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n", b"404"),
    ],
)  # fmt: skip
def test_odd_requests_get_a_plain_answer(hardened: Address, sent: bytes, status: bytes) -> None:
    first = raw(hardened, sent, 3.0).split(b"\r\n")[0]
    assert first.startswith(b"HTTP/1.1 " + status) or (not first and len(sent) > 1_000_000), first


@pytest.mark.slow
def test_many_headers_and_a_bomb_that_trickles_leave_the_server_answering(hardened: Address) -> None:
    host, port = hardened.url.removeprefix("http://").split(":")
    half = []
    try:
        for _ in range(50):
            connection = socket.create_connection((host, int(port)))
            connection.sendall(POST + JSON + b"Content-Length: 1000000\r\n\r\n{")
            half.append(connection)
        began = time.monotonic()
        with hardened.client() as client:
            assert client.get("/healthz").status_code == 200
        assert time.monotonic() - began < 5
    finally:
        for connection in half:
            connection.close()


@pytest.mark.slow
def test_whoever_is_slow_with_head_or_body_is_let_go(hardened: Address) -> None:
    host, port = hardened.url.removeprefix("http://").split(":")
    begun = [b"", b"GET /hea", POST + JSON + b"Content-Length: 99\r\n\r\n{"]
    connections = []
    for sent in begun:
        connection = socket.create_connection((host, int(port)), timeout=20)
        connection.sendall(sent)
        connections.append(connection)
    began = time.monotonic()
    last = connections[1]
    while time.monotonic() - began < 9:  # a byte now and then keeps nothing open
        time.sleep(1)
        last.sendall(b"x")
    got = []
    for connection in connections:
        with connection:
            got.append(connection.recv(1000))
    assert got[:2] == [b"", b""]
    assert got[2].startswith(b"HTTP/1.1 408")
    assert time.monotonic() - began < 16
