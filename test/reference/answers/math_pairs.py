"""Pairs of answers in LaTeX: a value drawn by a seed, two spellings of it, and spellings of another value of its kind."""

import random
from fractions import Fraction


class Writer:
    """Spells values, another way each time."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one_of(self, *spellings):
        return self.random.choice(spellings)

    def whole(self, n):
        sign, digits = "-" if n < 0 else "", str(abs(n))
        spaced = f"{abs(n):,}"
        if "," not in spaced:
            return self.one_of(f"{n}", f"{n}", f"{n}.0", f"{n}.00")
        return self.one_of(f"{n}", sign + spaced, sign + spaced.replace(",", "{,}"), sign + spaced.replace(",", "\\,"), sign + digits)

    def fraction(self, value):
        """In lowest terms, which is not 0 and no whole number."""
        sign, n, d = "-" if value < 0 else "", abs(value.numerator), value.denominator
        spellings = [
            f"{sign}\\frac{{{n}}}{{{d}}}",
            f"{sign}\\dfrac{{{n}}}{{{d}}}",
            f"\\frac{{{sign}{n}}}{{{d}}}",
            f"{sign}{n}/{d}",
        ]
        if sign:
            spellings.append(f"\\frac{{{n}}}{{-{d}}}")
        if n < 10 and d < 10:
            spellings.append(f"{sign}\\frac{n}{d}")
        if n > d:
            spellings.append(f"{sign}{n // d}\\frac{{{n % d}}}{{{d}}}")
        if not set(prime_factors(d)) - {2, 5}:
            spellings.append(decimal(value))
        return self.one_of(*spellings)

    def number(self, value):
        return self.whole(value.numerator) if value.denominator == 1 else self.fraction(value)

    def power_of_ten(self, exponent):
        plain = str(10**exponent) if exponent >= 0 else decimal(Fraction(1, 10**-exponent))
        return self.one_of(plain, f"10^{{{exponent}}}", f"1 \\times 10^{{{exponent}}}", f"1e{exponent}")

    def tuple(self, values, brackets="()"):
        start, end = self.one_of(tuple(brackets), ("\\left" + brackets[0], "\\right" + brackets[1]))
        return start + self.one_of(",", ", ", " , ").join(self.number(value) for value in values) + end

    def bound(self, value):
        if value == float("inf"):
            return self.one_of("\\infty", "+\\infty", "∞")
        return "-\\infty" if value == -float("inf") else self.number(value)

    def interval(self, low, high, brackets):
        return f"{brackets[0]}{self.bound(low)},{self.one_of('', ' ')}{self.bound(high)}{brackets[1]}"

    def set(self, values):
        values = self.random.sample(values, len(values))
        return "\\{" + self.one_of(",", ", ").join(self.number(value) for value in values) + "\\}"

    def matrix(self, rows):
        kind = self.one_of("pmatrix", "bmatrix", "pmatrix")
        cell, row = self.one_of(("&", "\\\\"), (" & ", " \\\\ "), (" & ", "\\\\\n"))
        end = self.one_of("", " \\\\ ") if row.startswith(" ") else ""
        body = row.join(cell.join(self.number(value) for value in values) for values in rows)
        return f"\\begin{{{kind}}}{self.one_of('', ' ')}{body}{end}\\end{{{kind}}}"

    def exponent(self, e):
        return self.one_of(f"^{e}", f"^{{{e}}}", f"^{{ {e} }}") if len(str(e)) == 1 else f"^{{{e}}}"

    def monomials(self, terms):
        """Of [coefficient, exponent], the highest first."""
        text = ""
        for coefficient, e in terms:
            sign = "-" if coefficient < 0 else "+" if text else ""
            size = "" if abs(coefficient) == 1 else str(abs(coefficient))
            text += self.one_of("", " ") + sign + self.one_of("", " ") + size + "x" + ("" if e == 1 else self.exponent(e))
        return text.strip()

    def in_base(self, digits, base):
        return digits + self.one_of(f"_{base}", f"_{{{base}}}")

    def root(self, factor, radicand):
        inside = self.one_of(f"\\sqrt{{{radicand}}}", f"\\sqrt {radicand}" if radicand < 10 else f"\\sqrt{{ {radicand} }}")
        return f"{factor}{inside}"

    def measured(self, value, unit):
        number = self.number(value)
        one, many, short = unit
        return self.one_of(
            number, f"{number} {many}", f"{number}\\text{{ {many}}}", f"{number}\\,\\mathrm{{{short}}}",
            f"{number}\\text{{ {one}(s)}}", f"{number} \\text{{ {one}}}",
        )

    def word(self, word):
        return self.one_of(word, word.lower(), f"\\text{{{word}}}", f"\\text{{ {word.lower()} }}", f"\\textbf{{{word}}}")


def prime_factors(n):
    return [p for p in range(2, n + 1) if n % p == 0 and all(p % q for q in range(2, p))]


def decimal(value):
    """A fraction whose decimals end."""
    places = next(k for k in range(30) if (value * 10**k).denominator == 1)
    digits = str(abs(int(value * 10**places))).rjust(places + 1, "0")
    return ("-" if value < 0 else "") + (digits[:-places] + "." + digits[-places:] if places else digits)


UNITS = [("hour", "hours", "h"), ("meter", "meters", "m"), ("inch", "inches", "in"), ("minute", "minutes", "min"), ("mile", "miles", "mi")]
WORDS = ["Yes", "No", "True", "False", "Evelyn", "Tuesday", "Parallelogram", "Infinite", "Even", "Odd"]


def kinds(rng):
    """By name: how a value is drawn, and how it is spelt. Values that are not equal are not the same answer."""

    def ratio():
        return Fraction(rng.randint(-40, 40), rng.randint(1, 12))

    def ratios(count):
        return tuple(ratio() for _ in range(count))

    def interval():
        low = rng.choice([ratio(), -float("inf")])
        high = rng.choice([float("inf"), (low if low != -float("inf") else 0) + rng.randint(1, 9)])
        start = "(" if low == -float("inf") else rng.choice("([")
        return low, high, start + (")" if high == float("inf") else rng.choice(")]"))

    def matrix():
        height, width = rng.choice([(2, 1), (2, 2), (1, 2), (3, 1), (2, 3)])
        return tuple(tuple(Fraction(rng.randint(-4, 4), rng.choice([1, 1, 2, 3])) for _ in range(width)) for _ in range(height))

    def polynomial():
        exponents = sorted(rng.sample(range(1, 14), rng.randint(1, 3)), reverse=True)
        return tuple((rng.choice([-3, -2, -1, 1, 2, 5]), e) for e in exponents)

    def base():
        b = rng.randint(3, 9)
        return "".join(str(rng.randint(1, b - 1)) for _ in range(rng.randint(2, 5))), b

    return {
        "whole": (lambda: rng.randint(-12, 12) if rng.random() < 0.5 else rng.randint(-(10**7), 10**7), Writer.whole),
        "fraction": (ratio, Writer.number),
        "power of ten": (lambda: rng.randint(-4, 9), Writer.power_of_ten),
        "tuple": (lambda: ratios(rng.randint(2, 3)), Writer.tuple),
        "interval": (interval, lambda w, v: w.interval(*v)),
        "set": (lambda: tuple(sorted(set(ratios(rng.randint(2, 4))))), Writer.set),
        "matrix": (matrix, Writer.matrix),
        "polynomial": (polynomial, Writer.monomials),
        "base": (base, lambda w, v: w.in_base(*v)),
        "root": (lambda: (rng.randint(2, 9), rng.choice([2, 3, 5, 6, 7, 10, 11])), lambda w, v: w.root(*v)),
        "unit": (lambda: (Fraction(rng.randint(2, 90)), rng.choice(UNITS)), lambda w, v: w.measured(*v)),
        "word": (lambda: rng.choice(WORDS), Writer.word),
    }


def pairs(count, seed):
    """[kind, expected, given, right]; half of them are right. Of units only the number is drawn anew in a wrong pair, since
    a unit may be left out."""
    rng, writer = random.Random(seed), Writer(seed + 1)
    of = kinds(rng)
    for i in range(count):
        kind = list(of)[i % len(of)]
        draw, spell = of[kind]
        value = draw()
        right = (i // len(of)) % 2 == 0
        other = value
        while not right and other == value:
            other = near(kind, value, rng) if rng.random() < 0.5 else draw()
            if kind == "unit":
                other = (other[0], value[1]) if other[0] != value[0] else value
        yield kind, spell(writer, value), spell(writer, other), right


def near(kind, value, rng):
    """Another value that is easily taken for this one; the same where the kind has none."""
    if kind == "whole":
        return rng.choice([-value, value + 1, value * 10])
    if kind == "power of ten":
        return rng.choice([-value, value + 1])
    if kind == "fraction":
        return rng.choice([-value, value + 1, 1 / value if value else value, value / 10])
    if kind == "tuple":
        return rng.choice([tuple(reversed(value)), (-value[0], *value[1:])])
    if kind == "interval":
        brackets = value[2]
        closed = {"(": "[", "[": "("}[brackets[0]]
        return value if value[0] == -float("inf") else (*value[:2], closed + brackets[1])
    if kind == "set":
        return value[1:] if len(value) > 2 else (value[0] - 1, *value[1:])
    if kind == "matrix":
        return rng.choice([tuple(zip(*value)), tuple(reversed(value)), ((-value[0][0], *value[0][1:]), *value[1:])])
    if kind == "polynomial":
        return rng.choice([((-value[0][0], value[0][1]), *value[1:]), ((value[0][0], value[0][1] + 10), *value[1:])])
    if kind == "base":
        return value[0], value[1] % 7 + 3
    if kind == "root":
        return value[1], value[0]
    return value
