"""Finds the things that a question speaks about: names, numbers, quotations, dates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_QUOTED = re.compile(
    r"\"([^\"\n]+)\"|\u201c([^\u201d\n]+)\u201d|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)|\u300c([^\u300d]+)\u300d"
)
_SMALL_NUMBERS = "two three four five six seven eight nine ten eleven twelve"
_NUMBER_WORDS = {word: str(value) for value, word in enumerate(_SMALL_NUMBERS.split(), 2)}
_NUMBER = re.compile(
    r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w]*\d)|\b(?:" + "|".join(_NUMBER_WORDS) + r")\b", re.IGNORECASE
)
_EXPRESSION = re.compile(r"\(*-?\d[\d\s.()]*(?:(?:\*\*|[-+*/^%\u00d7\u00f7])[\s(]*-?\d[\d\s.()]*)+")
_CAPITAL = r"[A-Z\u00c0-\u00dd][\w'\u2019&-]*"
_NAME = re.compile(rf"\b{_CAPITAL}(?:(?: (?:of|de|la|the|van|von|da))? {_CAPITAL})*(?:, [A-Z]{{2}}\b)?")
_AFTER = re.compile(r"\b(?:in|at|for|to|from|of|about|on|named|called|near)\s+([\w'\u2019-]+(?: [\w'\u2019-]+){0,2})")
_COUNTED = re.compile(r"\bhow (?:many|much)\s+([\w'\u2019-]+)", re.IGNORECASE)
_SHAPES = {
    "date": re.compile(r"\b\d{4}-\d{2}-\d{2}\b"),
    "date-time": re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?"),
    "time": re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b"),
    "email": re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    "uri": re.compile(r"https?://[^\s\"'<>)]+"),
    "uuid": re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
}
_CAPITALISED = """
    A An And Are At Be By Can Call Calculate Compute Could Convert Create Did Do Does Find For Generate Get Give Has
    Have Hello Hey Hi How I If In Is It Its Let List Look Make My Now Of Ok On Or Our Please Run Search Send Set Should
    Show So Tell Thank Thanks That The Then There These They This Those To Translate Use Using Was We Were What What's
    When Where Which Who Whose Why Will With Write Would Yes You Your Multiply Add Subtract Divide Also Answer Extract
    Return Say Book Summarize JSON Please Ask
    Provide Describe Explain Build Compare Define Identify Name Order Open Play Read Remind Schedule Start Stop Turn
    Update Delete Remove Check Count Choose Classify Analyze Analyse Parse Fill Given Based Here Today Tomorrow
    Yesterday User Question Query Text Input Context Output Using Only Each Every Some Any All No Not But
"""
_FIRST_WORDS = frozenset(_CAPITALISED.split()) | {word.capitalize() for word in _NUMBER_WORDS}


@dataclass(slots=True)
class Findings:
    """Things found in a text, each taken at most once, in order."""

    text: str
    quoted: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> Findings:
        """Look through a text."""
        quoted = [next(part for part in match.groups() if part) for match in _QUOTED.finditer(text)]
        return cls(text, quoted, names_in(text), numbers_in(text))

    def labelled(self, label: str) -> str | None:
        """Return the value that stands behind a label: `label=value`, `label: value`, `label is value`."""
        spoken = re.escape(label).replace("_", "[ _-]").replace(r"\-", "[ _-]")
        pattern = rf"\b{spoken}\b[\"'`]?\s*(?:=|:|\bis\b|\bare\b|\bof\b|\bnamed\b|\bcalled\b|\bto\b)\s*"
        match = re.search(pattern + r"(?:\"([^\"]+)\"|'([^']+)'|`([^`]+)`|([^\s,;()?!]+))", self.text, re.IGNORECASE)
        if match is None:
            return None
        value = next(part for part in match.groups() if part)
        longer = next((name for name in names_in(self.text) if name.startswith(value)), value)
        return longer.rstrip(".") if match.group(4) else value

    def shaped(self, form: str) -> str | None:
        """Return the first text of a known format (`date`, `email`, ...)."""
        match = _SHAPES[form].search(self.text) if form in _SHAPES else None
        return match.group() if match else None

    def take_number(self, *, whole: bool) -> int | float | None:
        """Return the next number that fits."""
        for index, text in enumerate(self.numbers):
            if whole and "." in text:
                continue
            del self.numbers[index]
            return int(text) if "." not in text else float(text)
        return None

    def take_text(self) -> str | None:
        """Return the next quotation, else the next name."""
        for source in (self.quoted, self.names):
            if source:
                value = source.pop(0)
                self.names = [name for name in self.names if name != value]
                return value
        return None

    def counted(self) -> str | None:
        """Return what a question asks the number of: the word behind "how many"."""
        found = _COUNTED.search(self.text)
        return found.group(1) if found else None

    def after_preposition(self) -> str | None:
        """Return the words behind the last preposition, where a question names its object in lower case."""
        found = _AFTER.findall(self.text)
        return str(found[-1]).strip() if found else None


def numbers_in(text: str) -> list[str]:
    """Return the numbers of a text, small ones in words included."""
    return [_NUMBER_WORDS.get(found.lower(), found.replace(",", "")) for found in _NUMBER.findall(text)]


def expression_in(text: str) -> str | None:
    """Return the first arithmetic expression of a text, written with Python's operators."""
    match = _EXPRESSION.search(text)
    if match is None:
        return None
    return match.group().strip(" .").replace("\u00d7", "*").replace("\u00f7", "/").replace("^", "**")


def names_in(text: str) -> list[str]:
    """Return capitalised names, without the words that are capitalised because a sentence begins."""
    found: list[str] = []
    for match in _NAME.finditer(text):
        parts = match.group().removesuffix("'s").removesuffix("\u2019s").split(" ")
        while parts and parts[0] in _FIRST_WORDS:
            parts.pop(0)
        name = " ".join(parts)
        if name and name not in found and (len(name) > 1 or not name.isalpha()):
            found.append(name)
    return found
