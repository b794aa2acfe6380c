"""What the pages and the descriptions of fields say about the options: every choice, its extra, and that it works."""

from __future__ import annotations

import inspect
import re
import tomllib
from typing import TYPE_CHECKING, Any, get_args

import pytest

from cerebras_ext import Client, connections
from cerebras_ext.encoding import PAYLOADS
from cerebras_ext.settings import ConnectionSettings, SettingsOptions, Transport
from langchain_cerebras_ext import CerebrasLLM, ChatCerebras
from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion
from tests.docs.blocks import ROOT

if TYPE_CHECKING:
    from cerebras_ext.emulator import Emulator

MODELS = (ChatCerebras, CerebrasLLM, Cerebras, CerebrasCompletion)
PAGES = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))


def descriptions(setting: str) -> dict[str, str]:
    """Return everything that tells a reader what a setting does, by where it stands."""
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    docstring = inspect.getdoc(SettingsOptions) or ""
    entry = re.search(rf"^    {setting}: .*(?:\n {{8}}.*)*", docstring, re.MULTILINE)
    assert entry is not None
    return {
        "docs/configuration.md": next(line for line in page.splitlines() if line.startswith(f"| `{setting}` |")),
        "SettingsOptions": entry[0].partition(":")[2],
        **{cls.__name__: cls.model_fields[setting].description or "" for cls in MODELS},
    }


def words(text: str) -> set[str]:
    """Return the words of a text, `msgpack+gzip` as one."""
    return set(re.findall(r"[\w+]+", text))


@pytest.mark.parametrize(("setting", "choices"), [("transport", get_args(Transport)), ("payload", PAYLOADS)])
def test_every_choice_is_named_wherever_a_setting_is_described(setting: str, choices: tuple[str, ...]) -> None:
    for place, text in descriptions(setting).items():
        assert set(choices) - words(text) == set(), place


@pytest.mark.parametrize(("setting", "extras"), [("transport", ["httptools", "aiohttp"]), ("http2", ["http2"])])
def test_what_needs_an_extra_says_so_wherever_it_is_described(setting: str, extras: list[str]) -> None:
    for place, text in descriptions(setting).items():
        assert [extra for extra in extras if f"extra `{extra}`" not in text] == [], place


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_extras_that_a_page_names_exist(page: Any) -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"extra `(\w+)`", text)
    named += [name for names in re.findall(r"cerebras-ext\[([\w,]+)\]", text) for name in names.split(",")]

    assert set(named) - set(known) == set()


@pytest.mark.parametrize("transport", sorted({*get_args(Transport)} - {"httpx"}))
def test_http2_is_over_httpx_only(transport: Any) -> None:
    with pytest.raises(ValueError, match="http2"):
        Client(api_key="any", http2=True, transport=transport)


@pytest.mark.parametrize(
    ("options", "encoding", "connection"),
    [
        ({"transport": "httptools", "coalesce": True, "payload": "auto"}, "json", ("httptools", False)),
        ({"transport": "aiohttp", "coalesce": True, "payload": "msgpack"}, "msgpack", ("aiohttp", False)),
        ({"http2": True, "payload": "msgpack+gzip"}, "msgpack+gzip", ("httpx", True)),
    ],
    ids=["httptools", "aiohttp", "http2"],
)
@pytest.mark.parametrize("make", MODELS)
def test_options_for_speed_are_keywords_of_every_model(
    make: Any,
    options: dict[str, Any],
    encoding: str,
    connection: tuple[str, bool],
    emulator: Emulator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[tuple[str, bool]] = []
    original = connections.registry.sync_transport

    def spy(settings: ConnectionSettings, user: object) -> Any:
        used.append((settings.transport, settings.http2))
        return original(settings, user)

    monkeypatch.setattr(connections.registry, "sync_transport", spy)

    def answer(**given: Any) -> str:
        model = make(model="gpt-oss-120b", **given)
        said = model.invoke("Count to 3") if hasattr(model, "invoke") else model.complete("Count to 3")
        return str(getattr(said, "text", said))

    assert answer(**options) == answer()
    fast, plain = emulator.requests
    assert fast.body == plain.body
    assert (fast.encoding, plain.encoding) == (encoding, "json")
    assert used == [connection, ("httpx", False)]
