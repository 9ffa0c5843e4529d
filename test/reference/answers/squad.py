"""Exact match and F1 of SQuAD v1.1 (Rajpurkar et al. 2016, arXiv 1606.05250), as its evaluation describes them, with Python's
own lower case, white space and word boundaries; HotpotQA (Yang et al. 2018) normalizes in the same way."""

import random
import re
import string
from collections import Counter


def normalized(text):
    """Lower case, no ASCII punctuation, no articles, white space collapsed; in this order."""
    plain = "".join(char for char in text.lower() if char not in string.punctuation)
    return " ".join(re.sub(r"\b(?:a|an|the)\b", " ", plain).split())


def exact_match(given, expected):
    return int(normalized(given) == normalized(expected))


def f1(given, expected):
    ours, theirs = normalized(given).split(), normalized(expected).split()
    common = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * common / (len(ours) + len(theirs)) if common else 0.0


# All that `str.split` splits at, and what other languages take for white space, or is not seen.
SPACES = [chr(code) for code in range(0x3100) if chr(code).isspace()] + ["\ufeff", "\u200b", "\u180e", "\u2060"]
WORDS = ["a", "an", "the", "The", "AN", "cat", "Owl", "île", "İstanbul", "ΣΊΣΥΦΟΣ", "naïve", "x2", "²", "Ⅷ", "四", "the_cat", "thé"]
MARKS = [*string.punctuation, "–", "”", "¿", "€", "\u0301"]


def pairs(count, seed):
    """[given, expected]: texts of such words, joined by white space, punctuation or nothing; half are of the same words."""
    rng = random.Random(seed)

    def text(words):
        parts = []
        for word in words:
            joint = rng.choice([" ", " ", rng.choice(SPACES), rng.choice(MARKS), ""])
            parts += [joint, rng.choice([word, word, word.upper(), word.lower()])]
        return "".join(parts) + rng.choice(["", "", ".", rng.choice(SPACES)])

    for _ in range(count):
        words = [rng.choice(WORDS) for _ in range(rng.randint(0, 5))]
        others = rng.sample(words, len(words)) if rng.random() < 0.5 else [rng.choice(WORDS) for _ in range(rng.randint(0, 4))]
        yield text(words), text(rng.choice([words, others]))
