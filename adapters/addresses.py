"""Addresses of hosts and services."""

import os
import re
from collections.abc import Mapping
from ipaddress import ip_address

__all__ = ["is_loopback", "service_address", "with_right_address"]

_SERVICES: Mapping[str, str] = {
    "OPENAI_BASE_URL": "https://api.openai.com/v1",
    "ANTHROPIC_BASE_URL": "https://api.anthropic.com",
}


def is_loopback(host: str) -> bool:
    """Return whether ``host`` (a name, or an address as written in a URL) always refers to this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def service_address(base_url: str | None, variable: str) -> str:
    """Return the address of a service, as its SDK finds it: ``base_url``, else the ``variable`` in the environment, else its own."""
    return base_url or os.environ.get(variable) or _SERVICES[variable]


_ADDRESS = re.compile(r"(https?)?:?/*([\w.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?(/[^#?\s]*)?(?:#\s*(\S+))?", re.IGNORECASE)
_ENDPOINT = re.compile(r"/+(chat/completions|completions|responses|embeddings|models|messages|api/\w+)/*$")
"""What follows the address of a service: the client adds it itself. ``/api/...`` are endpoints of Ollama beside its ``/v1``."""
_SERVERS: Mapping[str, str] = {
    "ollama": "http://localhost:11434/v1", "vllm": "http://localhost:8000/v1", "lmstudio": "http://localhost:1234/v1",
    "llamacpp": "http://localhost:8080/v1", "gemini": "https://generativelanguage.googleapis.com/v1beta/openai",
    "mistral": "https://api.mistral.ai/v1", "groq": "https://api.groq.com/openai/v1", "deepseek": "https://api.deepseek.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
}  # fmt: skip
"""The usual addresses of servers with the API of OpenAI, by the names that other tools use for them."""


def with_right_address(spec: str) -> str:
    """Return the form ``URL#MODEL`` of a spec that names a server in another way; "" if the address is right or can't be told.

    For example ``localhost:8000/v1#m``, ``http://localhost:8000/v1/chat/completions#m`` and ``ollama:llama3``.
    """
    name, _, model = spec.partition("/" if re.match(r"[\w.-]+/", spec) else ":")
    if server := _SERVERS.get(name.lower().replace(".", "").replace("-", "").replace("_", "")):
        return f"{server}#{model or 'MODEL'}"
    parts = _ADDRESS.fullmatch(spec.strip())
    if parts is None or not (parts[5] or parts[3]):
        return ""
    scheme, host, port, path, model = parts.groups(default="")
    endpoint = _ENDPOINT.search(path)
    if endpoint:
        path = "/v1" if endpoint[1].startswith("api/") else path[: endpoint.start()]
    scheme = scheme.lower() or ("http" if port or is_loopback(host) else "https")
    right = f"{scheme}://{host}{port}{path}#{model or 'MODEL'}"
    return "" if right == spec.strip() else right
