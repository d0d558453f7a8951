"""The direct client beside the SDK: requests, connections that a server closed, proxies, certificates, the environment."""

import asyncio
import ipaddress
import json
import socket
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from knotwork.adapters.llm import BudgetExceeded, LLMError, NotConfigured, Unavailable
from knotwork.adapters.llm.anthropic import AnthropicModel
from knotwork.adapters.llm.anthropic_batches import AnthropicBatches
from knotwork.adapters.llm.budget import Budget, Ledger
from knotwork.adapters.llm.http import retry_after
from knotwork.adapters.llm.openai import OpenAIModel
from knotwork.adapters.llm.openai_batches import OpenAIBatches
from knotwork.adapters.llm.proxies import proxy_of
from knotwork.runtime.models.factory import open_adapter
from support.model_server import KEY, ModelServer, answer_to

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
ANSWER = json.dumps({"choices": [{"message": {"content": "glad"}, "finish_reason": "stop"}]}).encode()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@asynccontextmanager
async def listening(serve, context=None):
    """Serve connections on loopback with ``serve(reader, writer)``; yield the port."""

    async def closing(reader, writer):
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(closing, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def read_request(reader):
    """Return the first line of the next request, after its body was read; "" at the end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return ""
    length = next((line for line in head.lower().split("\r\n") if line.startswith("content-length:")), ":0")
    await reader.readexactly(int(length.partition(":")[2]))
    return head.partition("\r\n")[0]


def reply(writer, body=ANSWER):
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    )


async def requests_of(make, *calls, **serving):
    """Return the requests that a model sends for ``calls``: each a dict of options."""
    async with ModelServer(**serving) as server:
        model = make(server)
        for options in calls:
            await model.generate("é😀 hi", **options)
        await model.aclose()
        return server.requests


def test_the_direct_client_sends_the_same_bodies_as_the_sdk():
    options = {"system": "be brief", "temperature": 0.5, "seed": 1, "max_tokens": 50, "stop": ["\n"]}
    calls = [{}, options, {"schema": SCHEMA}, {"choices": ["good", "bad"]}, {"model": "other"}]

    async def main():
        sides = [
            await requests_of(lambda s, d=direct: OpenAIModel("m", base_url=s.url, api_key=KEY, direct=d), *calls)
            for direct in (True, False)
        ]
        for direct, sdk in zip(*sides, strict=True):
            assert (direct.path, direct.body) == (sdk.path, sdk.body)
            for name in ("authorization", "content-type", "accept", "accept-encoding"):
                assert direct.headers[name] == sdk.headers[name]
            assert direct.headers["user-agent"].startswith("knotwork/")
            assert "openai" in sdk.headers["user-agent"].lower()

    asyncio.run(main())


@pytest.mark.parametrize("ending", ["", "/"])
def test_the_address_is_joined_as_by_the_sdk(ending):
    async def main():
        for direct in (True, False):
            made = lambda s, d=direct: OpenAIModel("m", base_url=f"{s.root}/a%20b/v1{ending}", direct=d)  # noqa: E731
            [request] = await requests_of(made, {})
            assert request.path == "/a%20b/v1/chat/completions"

    asyncio.run(main())


def test_the_environment_names_the_client():
    async def main():
        for named, agent in (("", "knotwork/"), ("direct", "knotwork/"), ("sdk", "AsyncOpenAI/")):
            environ = {"KNOTWORK_LLM_CLIENT": named}
            [request] = await requests_of(lambda s, e=environ: open_adapter(f"{s.url}#m", e), {})
            assert request.headers["user-agent"].startswith(agent)

    asyncio.run(main())
    with pytest.raises(NotConfigured, match="neither 'direct' nor 'sdk'"):
        open_adapter("http://127.0.0.1:9/v1#m", {"KNOTWORK_LLM_CLIENT": "fast"})


def test_settings_for_openai_reach_its_address_by_either_client(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")

    async def main():
        async with ModelServer() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            for custom in (False, True):
                if custom:  # only the SDK reads this setting
                    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: blue")
                model = open_adapter("openai:m", {"OPENAI_API_KEY": KEY})
                assert (await model.generate("hi", max_tokens=9)).text == answer_to("hi")
                await model.aclose()
                headers = server.requests[-1].headers
                assert (headers["openai-organization"], headers["openai-project"]) == ("org-1", "proj-1")
                assert headers["authorization"] == f"Bearer {KEY}"
                assert server.requests[-1].body["max_completion_tokens"] == 9
                assert headers.get("x-team") == ("blue" if custom else None)
                assert headers["user-agent"].startswith("AsyncOpenAI/") is custom

    asyncio.run(main())


@pytest.mark.slow
def test_a_connection_that_the_server_closed_meanwhile_costs_no_attempt():
    asked = []

    async def once(reader, writer):  # says nothing of closing, and closes
        asked.append(await read_request(reader))
        reply(writer)
        await writer.drain()

    async def main():
        async with listening(once) as port:
            model = OpenAIModel("m", base_url=f"http://127.0.0.1:{port}/v1", max_retries=0)
            for number in range(1, 4):
                assert (await model.generate("hi")).attempts == 1
                assert len(asked) == number
                await asyncio.sleep(0.05)
            await model.aclose()

    asyncio.run(main())


@pytest.mark.slow
def test_a_connection_that_closes_on_a_request_is_one_counted_repetition():
    asked = []

    async def twice(reader, writer):
        asked.append(await read_request(reader))
        reply(writer)
        asked.append(await read_request(reader))  # the second request on a connection gets no answer

    async def main():
        notices = []
        async with listening(twice) as port:
            model = OpenAIModel("m", base_url=f"http://127.0.0.1:{port}/v1")
            client = Budget(model, ledger := Ledger(max_calls=3))
            assert (await client.generate("one")).attempts == 1
            assert (await client.generate("two", notify=notices.append)).attempts == 2
            assert [(notice.kind, notice.attempt, notice.lost) for notice in notices] == [("retry", 2, True)]
            assert (len(asked), ledger.calls) == (3, 3)
            await model.aclose()

    asyncio.run(main())


def test_a_budget_without_another_call_ends_the_repetitions():
    async def main():
        async with ModelServer(always="503") as server:
            model = OpenAIModel("m", base_url=server.url)
            with pytest.raises(BudgetExceeded, match="the last request failed: 503") as caught:
                await Budget(model, Ledger(max_calls=1)).generate("hi")
            assert (caught.value.attempts, len(server.requests)) == (1, 1)
            await model.aclose()

    asyncio.run(main())


def test_numbers_that_json_does_not_have_are_refused_and_not_sent():
    async def main():
        async with ModelServer() as server:
            model = OpenAIModel("m", base_url=server.url)
            with pytest.raises(Exception, match="can't be sent"):
                await model.generate("hi", temperature=float("nan"))
            await model.aclose()
            assert server.requests == []

    asyncio.run(main())


REMOTE = "http://models.example/v1"
"""An address that only a proxy can reach."""


def test_a_proxy_is_used_as_the_environment_says(monkeypatch):
    seen = []

    async def proxy(reader, writer):
        while first := await read_request(reader):
            seen.append(first)
            reply(writer)

    async def main():
        async with listening(proxy) as port, ModelServer(answer=lambda _: "direct") as server:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
            for address, expected in ((REMOTE, "glad"), (server.url, "direct")):  # this machine never through a proxy
                for direct in (True, False):
                    model = OpenAIModel("m", base_url=address, api_key=KEY, direct=direct)
                    assert (await model.generate("hi")).text == expected
                    await model.aclose()
            assert seen == [f"POST {REMOTE}/chat/completions HTTP/1.1"] * 2

    asyncio.run(main())


def test_the_proxy_of_an_address(monkeypatch):
    assert proxy_of("https://api.openai.com/v1") is None
    monkeypatch.setenv("HTTPS_PROXY", "http://ida:secret@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "intern.example")
    proxy = proxy_of("https://api.openai.com/v1")
    assert proxy is not None and proxy.url == "http://ida:secret@127.0.0.1:9"
    assert "secret" not in f"{proxy} {proxy.name}" and "HTTPS_PROXY" in proxy.name
    assert proxy_of("http://api.openai.com/v1") is None
    for own in ("localhost:8000", "127.0.0.2", "[::1]:9", "intern.example", "gpu.intern.example:8000"):
        assert proxy_of(f"https://{own}/v1") is None
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:9")
    other = proxy_of("http://api.openai.com/v1")
    assert other is not None and "all_proxy" in other.name


@pytest.mark.parametrize("address", ["socks5://127.0.0.1:9", "socks9://127.0.0.1:9", "127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_refused_when_the_model_is_opened(address, monkeypatch):
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", address)
    for open_client in (
        lambda: OpenAIModel("m", base_url=REMOTE),
        lambda: AnthropicModel("m", base_url=REMOTE, api_key=KEY),
        lambda: OpenAIBatches(base_url=REMOTE, api_key=KEY),
        lambda: AnthropicBatches(base_url=REMOTE, api_key=KEY),
    ):
        with pytest.raises(NotConfigured, match="ALL_PROXY") as refused:
            open_client()
        assert "NO_PROXY" in refused.value.hint


def test_a_proxy_that_makes_no_connection_is_named(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{port}")

    async def main():
        model = OpenAIModel("m", base_url=REMOTE, max_retries=0)
        with pytest.raises(Unavailable, match=f"the proxy http://127.0.0.1:{port} .ALL_PROXY."):
            await model.generate("hi")
        await model.aclose()

    asyncio.run(main())


@pytest.fixture
def certificate(tmp_path):
    """A self-signed certificate for 127.0.0.1, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(
            name, name, key.public_key(), x509.random_serial_number(), now - timedelta(1), now + timedelta(1)
        )
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    written = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(written + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("direct", [True, False])
def test_a_certificate_is_checked_and_ssl_cert_file_names_others(monkeypatch, certificate, direct):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    async def serve(reader, writer):
        while await read_request(reader):
            reply(writer)

    async def main():
        async with listening(serve, context) as port:
            for trusted in (False, True):
                if trusted:
                    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
                model = OpenAIModel("m", base_url=f"https://127.0.0.1:{port}/v1", max_retries=0, direct=direct)
                if trusted:
                    assert (await model.generate("hi")).text == "glad"
                else:
                    with pytest.raises(Unavailable, match="certificate is not accepted") as caught:
                        await model.generate("hi")
                    assert caught.value.is_unreached
                await model.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("direct", [True, False])
def test_a_server_without_tls_and_a_missing_certificate_file_are_named(monkeypatch, direct):
    async def serve(reader, writer):
        await reader.readline()
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def failure(port):
        model = OpenAIModel("m", base_url=f"https://127.0.0.1:{port}/v1", max_retries=0, direct=direct)
        with pytest.raises(LLMError) as caught:
            await model.generate("hi")
        await model.aclose()
        return caught.value

    async def main():
        async with listening(serve) as port:
            plain = await failure(port)
            monkeypatch.setenv("SSL_CERT_FILE", "missing.pem")
            return plain, await failure(port)

    plain, unread = asyncio.run(main())
    assert (type(plain), type(unread)) == (Unavailable, NotConfigured)
    assert "no encrypted connection" in plain.message
    assert "SSL_CERT_FILE=missing.pem" in unread.message


def test_the_time_to_wait_is_read_as_seconds_milliseconds_or_a_date():
    def read(**headers):
        return retry_after(httpx2.Headers({name.replace("_", "-"): value for name, value in headers.items()}))

    assert read() == read(retry_after="soon") == read(retry_after="nan") == read(retry_after="-5") == 0
    assert read(retry_after="2.5") == 2.5
    assert read(retry_after="7", retry_after_ms="1500") == 1.5
    assert 50 < read(retry_after=format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)) <= 60
    assert read(retry_after=format_datetime(datetime.now(UTC) - timedelta(seconds=60), usegmt=True)) == 0


@pytest.mark.slow
def test_plain_calls_do_not_load_the_sdk():
    program = (
        "import asyncio, sys\n"
        "from knotwork.adapters.llm.openai import OpenAIModel\n"
        "async def main():\n"
        "    model = OpenAIModel('m', base_url='http://127.0.0.1:9/v1', max_retries=0)\n"
        "    try: await model.generate('hi')\n"
        "    except Exception as error: print(error.kind)\n"
        "    await model.aclose()\n"
        "asyncio.run(main())\n"
        "print('openai' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["unavailable", "False"]
    assert done.stderr == ""
