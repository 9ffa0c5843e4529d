"""Asks the code what the tests ask of the sound code, with other arguments, and compares what the two say.

The tests that see the bug are run once with the sound code, and each line of that run is noted. Parts of it are then
played again with both: a question and those before it that it needs, with plain values exchanged for others of their
shape. So what is asked has nothing to do with what the code has said. It is asked where the sound code says the same
twice. Objects count by what is said when they are used; calls of functions of the tests, and what they are given, too.

Appended to wire.py and mirror.py.
"""

import itertools
import random

MOST_TURNS = 40
MOST_ASKED = 2000
LONGEST_PART = 60
OTHERS = ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789")
# What only prepares, or tells how the code is written and not what it does.
NOT_COMPARED = frozenset(["import", "of_module", "methods"])
WHERE_VALUES_ARE = {"call": 1, "method": 2, "set": 2}
CHANGED_INSIDE = frozenset(f"builtins.{kind}" for kind in ("list", "tuple", "set", "frozenset", "dict"))


class Recorder(Tests):
    """Notes what is asked: [what, arguments, what the code asked meanwhile and was told, kind of answer, answer]."""

    def __init__(self, read, write) -> None:
        super().__init__(read, write)
        self.script: list = []
        self._asked_meanwhile: list = []

    def exchange(self, what: str, arguments: list):
        self._asked_meanwhile.append([])
        try:
            kind, told = super().exchange(what, arguments)
        finally:
            meanwhile = self._asked_meanwhile.pop()
        if what != "set_in_module":
            self.script.append([what, arguments, meanwhile, kind, told])
        return kind, told

    def answer(self, what: str, arguments: list) -> list:
        line = super().answer(what, arguments)
        self._asked_meanwhile[-1].append([what, arguments, line])
        return line


class Player(Tests):
    """Asks again what stands in a script, of whatever code is at the other end, and has it in packed values alone."""

    def __init__(self, read, write, script: list, abouts: dict) -> None:
        super().__init__(read, write)
        # What is told of objects of the tests and of the code, by their numbers in the script.
        self._own = abouts_within([[arguments, [line for _, _, line in meanwhile]] for _, arguments, meanwhile, _, _ in script])
        self._told_then = abouts_within([[told, [given for _, given, _ in meanwhile]] for _, _, meanwhile, _, told in script])
        # What this code has said of its objects: it says it once of each, maybe before this began.
        self.abouts = abouts
        # Numbers of objects of the code, by those that they have in the script.
        self._theirs: dict = {}
        self._met: set = set()
        # Objects of the tests are others in each part.
        self._shift = 0

    def play(self, part: list) -> list:
        """What is said to each question in turn."""
        self._shift += 1 << 20
        said = []
        for what, arguments, meanwhile, kind, told in part:
            try:
                packed = [self._there(one) for one in arguments]
                self._to_answer = [[asked, given, self._there(line)] for asked, given, line in meanwhile]
            except KeyError:
                said.append("not asked")
                continue
            self._said = said
            now, answer = self.exchange(what, packed)
            self._meet(told, answer)
            said.append([now, self._outcome(what, arguments, now, answer, kind == "raised")])
        return said

    def answer(self, what: str, arguments: list) -> list:
        """As the tests have answered."""
        self._said.append(["asked", what, [self._plain(one) for one in arguments]])
        if not self._to_answer:
            return ["raised", {"class": ["name", "builtins:TypeError"], "arguments": []}]
        _, given, line = self._to_answer.pop(0)
        self._meet(given, arguments)
        return line

    def _there(self, said):
        if isinstance(said, dict):
            return {key: self._there(one) for key, one in said.items()}
        if not isinstance(said, list) or not said:
            return said
        if said[0] == "yours":
            return ["yours", self._theirs[said[1]]]
        if said[0] == "mine":
            return ["mine", said[1] + self._shift, self._there(self._own[said[1]])]
        return [self._there(one) for one in said]

    def _meet(self, then, now) -> None:
        """Objects that stand in the same place are the same ones, and so are those that are told of them."""
        self.abouts.update(abouts_within(now))
        self._meet_parts(then, now)

    def _meet_parts(self, then, now) -> None:
        if isinstance(then, dict) and isinstance(now, dict):
            for key in then.keys() & now.keys():
                self._meet_parts(then[key], now[key])
        elif isinstance(then, list) and isinstance(now, list):
            if then[:1] == now[:1] == ["mine"]:
                self._theirs[then[1]] = now[1]
                pair = (then[1], now[1])
                if pair not in self._met:
                    self._met.add(pair)
                    self._meet_parts(self._told_then.get(then[1]), self.abouts.get(now[1]))
                return
            for one, other in zip(then, now):
                self._meet_parts(one, other)

    def _outcome(self, what: str, arguments: list, kind: str, answer, by_name: bool):
        if kind == "raised":
            # Which exception it is, where a test has asked for one.
            return self._plain(answer.get("class")) if by_name else None
        if what == "method" and arguments[1] == "exit":
            return bool(answer)
        asks_for_how = what in ("get", "method") and str(arguments[1]).startswith(("_", "dir"))
        return None if what in NOT_COMPARED or asks_for_how else self._plain(answer)

    def _plain(self, said):
        """What is compared. The order in sets and mappings is not, nor where an object is."""
        if isinstance(said, str):
            return "an address" if " at 0x" in said else said
        if isinstance(said, float) and said != said:
            return "nan"
        if not isinstance(said, list) or not said:
            return said
        if said[0] == "made":
            parts = [self._plain(one) for one in said[2]]
            is_ordered = said[1] not in ("builtins.set", "builtins.frozenset", "builtins.dict")
            return [said[1], parts if is_ordered else sorted(parts, key=repr)]
        if said[0] == "mine":
            if isinstance(said[2], dict):
                self.abouts[said[1]] = said[2]
            known = self.abouts.get(said[1], {})
            return ["value", self._plain(known["value"])] if "value" in known else ["object", known.get("name") if "bases" in known else None]
        if said[0] == "yours":
            return ["yours", said[1] - self._shift]
        return said


def difference(script: list, sound: Player, code: Player, draw: str) -> str | None:
    """The first question to which the two say different things, in words."""
    rng = random.Random(draw)
    parts = parts_of(script)
    rng.shuffle(parts)
    sound.play([entry for entry in script if entry[0] == "import"])
    asked = 0
    for turn, part in enumerate(itertools.islice(itertools.cycle(parts), MOST_TURNS)):
        asked += len(part)
        if asked > MOST_ASKED:
            return None
        # The same ones; others, and others for the same; others each time.
        change = [lambda said: said, Change(rng, {}), Change(rng, {}), Change(rng, None)][turn % 4]
        other = [[what, with_values(what, arguments, change), *rest] for what, arguments, *rest in part]
        try:
            wanted, again = sound.play(other), sound.play(other)
        except Failed:
            # Too much for the sound code, so for any.
            return None
        if wanted == again and said_to(code, other) != wanted:
            return in_words(other[-1], names_in(script))[:200]
    return None


def names_in(script: list) -> dict:
    """What objects of modules are called there, by number."""
    return {told[1]: ".".join(arguments) for what, arguments, _, kind, told in script if what == "of_module" and kind == "said" and isinstance(told, list) and told[:1] == ["mine"]}


def in_words(entry: list, names: dict) -> str:
    what, arguments = entry[:2]
    asked = arguments[0] if arguments else None
    name = names.get(asked[1]) if isinstance(asked, list) and asked[:1] == ["yours"] else None
    if what == "call" and name is not None:
        return f"{name}({json.dumps(arguments[1:])[1:-1]})"
    return f"{what} {json.dumps(arguments)}"


def said_to(code: Player, part: list):
    try:
        return code.play(part)
    except Exception as error:
        # It says what cannot be read.
        return type(error).__name__


def parts_of(script: list) -> list:
    """For each question whose answer says something: it, and those before that made or used the objects that it needs."""
    uses = [numbers_in(arguments, "yours") for _, arguments, *_ in script]
    makes: list = []
    seen: set = set()
    # Functions and classes: what was asked of them before makes no difference.
    lasting: set = set()
    for what, _, meanwhile, _, told in script:
        new = numbers_in([told, [given for _, given, _ in meanwhile]], "mine") - seen
        seen |= new
        makes.append(new)
        lasting |= numbers_of_classes(told) | (new if what == "of_module" else set())
    parts = []
    for target, (what, arguments, meanwhile, kind, told) in enumerate(script):
        is_object = kind == "said" and isinstance(told, list) and told[:1] == ["mine"]
        if what in NOT_COMPARED or (is_object and not meanwhile and "value" not in (told[2] or {})):
            continue
        wanted, chosen = set(uses[target]), [script[target]]
        for i in range(target - 1, -1, -1):
            if makes[i] & wanted or (uses[i] - lasting) & wanted:
                wanted |= uses[i]
                chosen.append(script[i])
        if len(chosen) <= LONGEST_PART:
            parts.append(chosen[::-1])
    return parts


def abouts_within(said) -> dict:
    """What is told of objects there, by number."""
    found: dict = {}

    def look(said) -> None:
        if isinstance(said, dict):
            said = list(said.values())
        if isinstance(said, list):
            if said[:1] == ["mine"] and isinstance(said[2], dict):
                found[said[1]] = said[2]
            for one in said:
                look(one)

    look(said)
    return found


def numbers_in(said, tag: str) -> set:
    if isinstance(said, dict):
        said = list(said.values())
    if not isinstance(said, list):
        return set()
    return ({said[1]} if said[:1] == [tag] else set()).union(*(numbers_in(one, tag) for one in said))


def numbers_of_classes(said) -> set:
    if isinstance(said, dict):
        said = list(said.values())
    if not isinstance(said, list):
        return set()
    is_class = said[:1] == ["mine"] and isinstance(said[2], dict) and "bases" in said[2]
    return ({said[1]} if is_class else set()).union(*(numbers_of_classes(one) for one in said))


def with_values(what: str, arguments: list, change) -> list:
    """Arguments with their values changed, and no names."""
    if what not in WHERE_VALUES_ARE:
        return arguments
    place = WHERE_VALUES_ARE[what]
    other = [*arguments[:place], change(arguments[place])]
    for tag, kind, pairs in arguments[place + 1 :]:
        other.append([tag, kind, [[made, pair, [key, change(value)]] for made, pair, [key, value] in pairs]])
    return other


class Change:
    """A packed value of the same shape: digits for digits, letters for letters, numbers a little larger."""

    def __init__(self, rng: random.Random, same: dict | None) -> None:
        self._rng, self._same = rng, same

    def __call__(self, said):
        if isinstance(said, list):
            if said[:1] != ["made"] or said[1] not in CHANGED_INSIDE:
                return said
            if said[1] == "builtins.dict" and self._same is None:
                return [*said[:2], [[made, pair, [key, self(value)]] for made, pair, [key, value] in said[2]]]
            return [*said[:2], [self(one) for one in said[2]]]
        if said is None or isinstance(said, (bool, dict)):
            return said
        if self._same is None:
            return self._other(said)
        key = type(said), said
        if key not in self._same:
            self._same[key] = self._other(said)
        return self._same[key]

    def _other(self, value):
        if isinstance(value, str):
            return "".join(self._letter(one) if self._rng.random() < 0.5 else one for one in value)
        return value + self._rng.choice([0, 1, 2])

    def _letter(self, letter: str) -> str:
        return next((self._rng.choice(kind) for kind in OTHERS if letter in kind), letter)
