"""The random numbers of core/random.ts: Philox4x32-10 under a key that is made of a path. test/golden/learner/random.json
holds both sides together."""

import numpy as np

WORD = 0xFFFFFFFF
Key = tuple[int, int]


def random_key(*path: str | int) -> Key:
    """FNV-1a into two lanes over the UTF-16 units of each label, then mixed."""
    a, b = 0x811C9DC5, 0x9E3779B9
    for part in path:
        text = f"{'n' if isinstance(part, int) else 's'}{part}\0"
        units = text.encode("utf-16-le")
        for low, high in zip(units[::2], units[1::2]):
            code = low | high << 8
            a = ((a ^ code) * 0x01000193) & WORD
            b = ((b ^ (code + 0x7F)) * 0x85EBCA6B) & WORD
            b = ((b << 13) | (b >> 19)) & WORD
    return _mix(a ^ (b >> 7)), _mix(b ^ ((a << 11) & WORD))


def uniform(key: Key, count: int, first: int = 0) -> np.ndarray:
    """Draws `first` to `first + count` of the stream, float64 in [0, 1) with 32 bits of resolution."""
    return philox(key, np.arange(first, first + count, dtype=np.uint64))[0] / 4294967296


def normal(key: Key, count: int) -> np.ndarray:
    """Standard normal numbers (Box and Muller)."""
    first, second = philox(key, np.arange(count, dtype=np.uint64))[:2]
    return np.sqrt(-2 * np.log((first + 1.0) / 4294967297)) * np.cos(2 * np.pi * second / 4294967296)


def philox(key: Key, counter: np.ndarray) -> tuple[np.ndarray, ...]:
    """Ten rounds (Salmon et al. 2011): the four words of each counter, as uint64."""
    word, shift = np.uint64(WORD), np.uint64(32)
    c0, c1 = counter & word, counter >> shift
    c2 = c3 = np.zeros_like(counter)
    k0, k1 = key
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> shift) ^ c1 ^ np.uint64(k0), p1 & word, (p0 >> shift) ^ c3 ^ np.uint64(k1), p0 & word
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return c0, c1, c2, c3


def _mix(x: int) -> int:
    x = ((x ^ (x >> 16)) * 0x85EBCA6B) & WORD
    x = ((x ^ (x >> 13)) * 0xC2B2AE35) & WORD
    return x ^ (x >> 16)
