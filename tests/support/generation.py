"""Random texts that an emitted grammar admits, as a model writes that is constrained by it."""

import random

from llguidance import LLMatcher

MOST = 5_000


def generate(seed: int, matcher: LLMatcher, liked: bytes, ends: bytes, *, endless: bool = False) -> str | None:
    """Write a text byte by byte; None if it ends inside a character. It must end within ``MOST`` bytes.

    Where texts may be ``endless`` (a block holds any number of commands), None also stands for one that does not end. Of what
    the grammar allows ``liked`` bytes come mostly, and ``ends`` first once the text is long enough.
    """
    choose, written = random.Random(seed), bytearray()
    while not (matcher.is_accepting() and (matcher.is_stopped() or (len(written) > 150 and choose.random() < 0.3))):
        mask = matcher.compute_bitmask()
        allowed = [byte for byte in range(256) if mask[byte >> 3] >> (byte & 7) & 1]
        good = [byte for byte in allowed if byte in liked]
        byte = choose.choice(good if good and choose.random() < 0.95 else allowed)
        if len(written) > 150:  # towards the end
            byte = next((end for end in ends if end in allowed), byte)
        matcher.consume_token(byte)
        written.append(byte)
        if len(written) >= MOST:
            assert endless, "the text does not end"
            return None
    try:
        return written.decode("utf-8")
    except UnicodeDecodeError:
        return None
