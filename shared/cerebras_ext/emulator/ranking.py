"""Lexical scoring: which sentence of a text fits a question best."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|(?<=[\u3002\uff01\uff1f])|\n+")
_CAPITALISED = re.compile(r"\b[A-Z][\w-]*")
_METADATA = re.compile(r"[\w-]+: \S*$|[-=*_#>|:\s]*$")
_WRAPPED = 60
"""Characters from which a line counts as one that was wrapped, not ended."""
_NEW_LINE = re.compile(r"\s*(?:[-*+>#|]|\d+[.)]\s|```|$)|[\w-]+: ")
_ABBREVIATION = re.compile(r"\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|vs|e\.g|i\.e|etc|approx|No)\.$")

_COMMON = """
    a about after all also am an and any anybody anyone are as at be been before being both but by can could
    did do does doing down each else few for from give had has have having he her here hers him his how i if in into is
    it its itself just know let like ll made make many may me might more most much must my no nor not now of off on
    once one only or other our out over own please said same say she should so some such tell than that the their them
    then there these they this those through times to
    too under until up us use used using very want was we were what when
    where whether which while who whom whose why will with would you your yours
"""
STOPWORDS = frozenset(_COMMON.split())

_SAME = {
    # Words of questions and the words of tools and passages that answer them.
    "temperatur": "weather", "forecast": "weather", "rain": "weather", "sunny": "weather", "sunni": "weather",
    "snow": "weather", "humid": "weather",
    "multipli": "multiply",  "product": "multiply",
    "plus": "add", "sum": "add", "addit": "add", "addition": "add", "total": "add",
    "minus": "subtract", "differenc": "subtract",
    "divid": "divide", "quotient": "divide",
    "comput": "calculate", "calculat": "calculate", "calculator": "calculate", "evaluat": "calculate",
    "find": "search", "look": "search", "lookup": "search", "retriev": "search", "queri": "search",
    "cost": "price", "pric": "price", "expensiv": "price",
    "mail": "email", "high": "height", "tall": "height", "old": "age",
}  # fmt: skip
_ENDINGS = ("ization", "ations", "ation", "ingly", "ments", "ment", "ness", "ings", "ing", "edly", "ies", "ed", "es")


def stem(word: str) -> str:
    """Return a rough stem of a word, joined with its likes."""
    if word in _SAME:
        return _SAME[word]
    root = word
    if len(word) > 3:
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                root = word[: -len(ending)] + ("i" if ending == "ies" else "")
                break
        else:
            root = word.removesuffix("s") if not word.endswith("ss") else word
        root = root.removesuffix("e")
        root = f"{root[:-1]}i" if root.endswith("y") else root
    return _SAME.get(root, root)


def words(text: str) -> list[str]:
    """Return the stems of a text's content words, in order."""
    return [stem(word) for word in _WORD.findall(text.lower()) if word not in STOPWORDS]


def sentences(text: str) -> list[str]:
    """Split a text into sentences and lines, without rulers and lines of metadata."""
    found: list[str] = []
    joined = False
    for piece in _SENTENCE_END.split(text):
        piece = piece.strip()
        if not piece:
            continue
        if joined and found:
            found[-1] = f"{found[-1]} {piece}"
        else:
            found.append(piece)
        joined = _ABBREVIATION.search(piece) is not None
    return [piece for piece in found if not _METADATA.fullmatch(piece)]


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence with the paragraph that it stands in."""

    text: str
    around: str = ""
    code: bool = False
    """Whether it is a line of code or of a table: worth less than a sentence."""


def passages(text: str) -> list[Passage]:
    """Return the sentences of a text with their paragraphs; Markdown's fences and tables are told apart."""
    found: list[Passage] = []
    fenced = False
    for paragraph in re.split(r"\n[ \t]*\n", text):
        lines: list[str] = []
        for line in paragraph.split("\n"):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif fenced or line.lstrip().startswith("|") or line.startswith("    "):
                if not _METADATA.fullmatch(line.strip()):
                    found.append(Passage(line.strip(), paragraph, code=True))
            elif lines and _continues(lines[-1], line):
                lines[-1] = f"{lines[-1]} {line.strip()}"
            else:
                lines.append(line)
        found += [Passage(sentence, paragraph) for sentence in sentences("\n".join(lines))]
    return found


def _continues(before: str, line: str) -> bool:
    """Whether a line goes on with a sentence that was wrapped at the width of a page."""
    last = before.rsplit("\n", 1)[-1]
    return len(last) >= _WRAPPED and _NEW_LINE.match(line) is None


@dataclass(frozen=True, slots=True)
class Match:
    """The passage that fits best."""

    text: str
    score: float


def best_passage(question: str, candidates: Sequence[Passage]) -> Match | None:
    """Return the candidate that shares the rarest words with a question, or None where none shares any.

    Words of the sentence count fully, words of its paragraph a little, names among them more: a paragraph names its
    subject once and has pronouns for it afterwards.
    """
    wanted = list(dict.fromkeys(words(question)))
    if not wanted or not candidates:
        return None
    contents = [words(candidate.text) for candidate in candidates]
    paragraphs = {around: frozenset(words(around)) for around in {candidate.around for candidate in candidates}}
    weights = _weights(wanted, contents)
    subject = {word for name in _CAPITALISED.findall(question) for word in words(name)}
    best: Match | None = None
    for candidate, content in zip(candidates, contents, strict=True):
        own, near = set(content), paragraphs[candidate.around]
        score = sum(weights[word] for word in wanted if word in own)
        score += sum(weights[word] * (0.8 if word in subject else 0.3) for word in wanted if word in near - own)
        score *= _worth(candidate, content, shares=not own.isdisjoint(wanted))
        if score > 1e-9 and (best is None or score > best.score + 1e-9):
            best = Match(candidate.text, score)
    return best


def _worth(candidate: Passage, content: Sequence[str], *, shares: bool) -> float:
    """Return by how much a passage is worth less than a short sentence that shares words with the question."""
    worth = 1.0 - 0.002 * min(len(content), 100)
    if not shares:
        worth *= 0.5
    # A heading or a question says less than a sentence.
    if len(content) < 3 or candidate.text.endswith(("?", ":")) or candidate.text.startswith("#"):
        worth *= 0.5
    return worth * 0.8 if candidate.code else worth


def _weights(wanted: Iterable[str], contents: Sequence[Sequence[str]]) -> dict[str, float]:
    frequency = Counter(word for content in contents for word in set(content))
    return {word: math.log(1.0 + (len(contents) + 1) / (frequency[word] + 0.5)) for word in wanted}
