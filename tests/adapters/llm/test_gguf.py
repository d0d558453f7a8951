"""The number of parameters in the header of a GGUF file, and which local models count as small."""

import struct
from pathlib import Path

import pytest
from knotwork.adapters.llm.gguf import parameter_count
from knotwork.adapters.llm.strict_schema import SMALL_PARAMETERS, ModelCapabilities, capabilities_of


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def header(*shapes: tuple[int, ...], version: int = 3, magic: bytes = b"GGUF") -> bytes:
    """Return the header of a file with tensors of these shapes, and a value of each kind."""
    pairs = [
        text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama"),
        text(b"llama.context_length") + struct.pack("<II", 4, 8192),
        text(b"flag") + struct.pack("<IB", 7, 1),
        text(b"scale") + struct.pack("<Id", 12, 0.5),
        text(b"tokens") + struct.pack("<IIQ", 9, 8, 3) + text(b"a") + text(b"bc") + text(b""),
        text(b"scores") + struct.pack("<IIQ3f", 9, 6, 3, 0.1, 0.2, 0.3),
        text(b"nested") + struct.pack("<IIQ", 9, 9, 1) + struct.pack("<IQ2I", 4, 2, 1, 2),
    ]
    made = magic + struct.pack("<IQQ", version, len(shapes), len(pairs)) + b"".join(pairs)
    for number, shape in enumerate(shapes):
        made += (
            text(f"t{number}".encode()) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", 0, 0)
        )
    return made


@pytest.mark.parametrize("version", [2, 3])
def test_the_sizes_of_all_tensors_are_added(tmp_path: Path, version: int) -> None:
    (tmp_path / "m.gguf").write_bytes(header((4, 5), (7,), (2, 3, 4), version=version) + bytes(64))
    assert parameter_count(tmp_path / "m.gguf") == 20 + 7 + 24


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"GGUF",
        header((4,), magic=b"GGML"),
        header((4,), version=1),
        header((4,), version=9),
        b"GGUF" + b"\xff" * 60,
    ],
)
def test_a_file_of_another_kind_has_no_count(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.gguf").write_bytes(data)
    assert parameter_count(tmp_path / "m.gguf") is None


@pytest.mark.slow
def test_a_truncated_or_damaged_header_has_no_count(tmp_path: Path) -> None:
    whole, path = header((4, 5)), tmp_path / "m.gguf"
    for end in range(1, len(whole)):
        path.write_bytes(whole[:end])
        assert parameter_count(path) is None
    for at in range(4, len(whole)):
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        parameter_count(path)  # returns, with a number or without


def test_a_missing_file_and_a_folder_have_no_count(tmp_path: Path) -> None:
    assert parameter_count(tmp_path / "missing.gguf") is None
    assert parameter_count(tmp_path) is None


def test_a_local_model_of_less_than_two_billion_parameters_is_small(tmp_path: Path) -> None:
    small, large = tmp_path / "small.gguf", tmp_path / "large.gguf"
    small.write_bytes(header((1_000_000, 1_500)))
    large.write_bytes(header((SMALL_PARAMETERS,)))
    found = capabilities_of(f"local:{small}")
    assert found == ModelCapabilities(grammar=True, small=True, parameters=1_500_000_000)
    assert found.remark == (
        "the model is small (1,500 million parameters): its answers are constrained to a small grammar and kept short"
    )
    found = capabilities_of(f"local:{large}")
    assert (found.small, found.parameters, found.remark) == (False, SMALL_PARAMETERS, "")
    assert not capabilities_of(f"local:{tmp_path}/missing.gguf").small


def test_a_file_that_was_replaced_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(header((4,)))
    assert parameter_count(path) == 4
    path.write_bytes(header((4,), (5,)))
    assert parameter_count(path) == 9
