"""Images of requests: the type comes from the content, and the size is bounded."""

import base64

import pytest
from knotwork.adapters.llm.images import MAX_BYTES, image_of, image_of_url

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0abc", "image/jpeg"),
        (b"GIF89a...", "image/gif"),
        (b"RIFF1234WEBPVP8 ", "image/webp"),
    ],
)
def test_the_type_comes_from_the_content(data, media_type):
    assert image_of(data).media_type == media_type
    url = f"data:text/html;charset=utf-8;base64,{base64.b64encode(data).decode()}"
    assert image_of_url(url) == image_of(data)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("data:image/png;base64,", "empty"),
        ("data:image/svg+xml;base64,PHN2Zy8+", "not an image"),
        ("data:image/png,abc", "not in Base64"),
        ("data:image/png;base64,a b", "not valid Base64"),
        ("data:image/png;base64," + "A" * (MAX_BYTES * 4 // 3 + 100), "larger than 5 MiB"),
        ("data:" + "x" * 1_000_000, "not in Base64"),
    ],
)
def test_other_urls_are_refused_with_a_reason(url, why):
    with pytest.raises(ValueError, match=why):
        image_of_url(url)


def test_the_size_is_bounded_and_equal_contents_have_equal_digests():
    assert image_of(PNG + b"0" * (MAX_BYTES - len(PNG))).media_type == "image/png"
    with pytest.raises(ValueError, match="larger"):
        image_of(PNG + b"0" * MAX_BYTES)
    assert image_of(PNG).digest == image_of(bytes(PNG)).digest != image_of(PNG + b"0").digest
