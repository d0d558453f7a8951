"""Images in requests: reads them from data URLs and bytes, and encodes them for services. The type is determined by the content."""

import base64
import binascii
import re

from blake3 import blake3

from . import ImageInput

MAX_BYTES = 5 << 20
"""Maximum size of an image: 5 MiB, the smallest limit of the services."""

_DATA_URL = re.compile(r"data:[a-zA-Z0-9.+/-]{0,100}(?:;[a-zA-Z0-9=.+-]{1,100}){0,4};base64,")
_FORMATS = "PNG, JPEG, GIF and WebP"


def image_of(data: bytes) -> ImageInput:
    """Return the image in ``data``. Raises ``ValueError`` with the reason if it is too large, or not PNG, JPEG, GIF or WebP."""
    if not data:
        raise ValueError("it is empty")
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
    media_type = _media_type(data)
    if not media_type:
        raise ValueError(f"its content is not an image; {_FORMATS} can be used")
    return ImageInput(data, media_type, blake3(data).hexdigest())


def is_data_url(text: str) -> bool:
    """Return whether ``text`` begins as a data URL."""
    return text[:5].lower() == "data:"


def image_of_url(text: str) -> ImageInput:
    """Return the image in a data URL in Base64. The type that the URL names is ignored. Raises ``ValueError`` with the reason."""
    head = _DATA_URL.match(text)
    if head is None:
        raise ValueError("the data URL is not in Base64; the form is data:image/png;base64,...")
    if len(text) - head.end() > MAX_BYTES * 4 // 3 + 8:
        raise ValueError(f"it is larger than {MAX_BYTES >> 20} MiB")
    try:
        data = base64.b64decode(text[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the data URL is not valid Base64") from None
    return image_of(data)


def _media_type(data: bytes) -> str:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def base64_text(image: ImageInput) -> str:
    """Return the image's content in Base64."""
    return base64.b64encode(image.data).decode()


def data_url(image: ImageInput) -> str:
    """Return the image as a data URL."""
    return f"data:{image.media_type};base64,{base64_text(image)}"
