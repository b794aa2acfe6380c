"""The decoder of server-sent events: every line end, every split, nothing else is framing."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebras_ext.sse import Event, SSEDecoder


def decode(*chunks: bytes) -> list[Event]:
    decoder = SSEDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.finish()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_lines_end_at_crlf_lf_or_cr(end: bytes) -> None:
    data = end.join([b"data: 1", b"", b"data: 2", b"", b""])
    assert [event.data for event in decode(data)] == [b"1", b"2"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_event_is_out_as_soon_as_its_blank_line_is(end: bytes) -> None:
    decoder = SSEDecoder()
    assert [event.data for event in decoder.feed(b"data: 1" + end + end)] == [b"1"]


@pytest.mark.parametrize("character", "\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e\x00é\U0001f600")
def test_other_separators_are_text(character: str) -> None:
    payload = f'{{"content":"a{character}b"}}'.encode()
    for position in range(1, len(payload)):
        assert [event.data for event in decode(b"data: " + payload[:position], payload[position:] + b"\n\n")] == [
            payload
        ]


def test_comments_other_fields_and_empty_events_are_ignored() -> None:
    stream = b": ping\n\nretry: 5\nid: 7\nunknown\ndata: 1\n: in between\n\n\n\n:\n\ndata:2\n\n"
    assert decode(stream) == [Event(b"1"), Event(b"2")]


def test_data_lines_are_joined_and_one_space_is_taken_off() -> None:
    assert decode(b"data: a\ndata:  b\ndata:\ndata\ndata: c\n\n") == [Event(b"a\n b\n\n\nc")]


def test_the_name_belongs_to_its_event_only() -> None:
    assert decode(b"event: error\ndata: 1\n\nevent: gone\n\ndata: 2\n\n") == [Event(b"1", b"error"), Event(b"2")]


def test_a_final_event_without_its_blank_line_is_not_lost() -> None:
    assert decode(b"data: 1\n\ndata: 2") == [Event(b"1"), Event(b"2")]
    assert decode(b"data: 1\n\ndata: 2\n") == [Event(b"1"), Event(b"2")]
    assert decode(b"data: 1\r\n\r\ndata: 2\r") == [Event(b"1"), Event(b"2")]
    assert decode(b"") == []


BOM = b"\xef\xbb\xbf"


def test_a_byte_order_mark_is_dropped_at_the_start_only() -> None:
    for position in range(4):
        assert decode(BOM[:position], BOM[position:] + b"data: 1\n\ndata: " + BOM + b"\n\n") == [
            Event(b"1"),
            Event(BOM),
        ]
    assert decode(b"\xef", b"data: 1\n\n") == []


HARD = (
    BOM + b": c\r\n\r\ndata: a\r\ndata: b\r\n\r\nevent: error\rdata: \xe2\x80\xa8\r\r"
    b"data:x\n\n\n\ndata: {\"t\": \"\xf0\x9f\x98\x80\"}\r\n\r\ndata: last"
)  # fmt: skip


def test_any_two_and_any_three_pieces_give_the_same() -> None:
    expected = decode(HARD)
    assert [event.data for event in expected] == [b"a\nb", b"\xe2\x80\xa8", b"x", b'{"t": "\xf0\x9f\x98\x80"}', b"last"]
    for first, second in itertools.combinations_with_replacement(range(len(HARD) + 1), 2):
        assert decode(HARD[:first], HARD[first:second], HARD[second:]) == expected
    assert decode(*(HARD[i : i + 1] for i in range(len(HARD)))) == expected


@given(
    st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"data: ", b"data", b":", b"event: error", b"x", BOM])),
    st.randoms(),
)
def test_random_streams_do_not_depend_on_the_split(parts: list[bytes], rng: random.Random) -> None:
    stream = b"".join(parts)
    cuts = sorted(rng.randrange(len(stream) + 1) for _ in range(rng.randrange(6)))
    pieces = [stream[a:b] for a, b in itertools.pairwise([0, *cuts, len(stream)])]
    assert decode(*pieces) == decode(stream)


WHOLE = b"data: 1\n\n"
STATES = [
    b"", b"data: 0\n\n", b"data: 0\n", b"dat", b"\xef\xbb\xbf", b"\xef\xbb", b"event: error\n", b"data: 0\r",
    b"data: 0\n\r", b"data: 0\n\n\r", b'{"error":\n', b": comment\n", b"data: ",
]  # fmt: skip
PIECES = [
    WHOLE, b"data: \n\n", b"data: a\rb\n\n", b"data: a\r\n\n", b"data: a\ndata: b\n\n", b"data: a\n", b"data: a\n\n\n",
    b"data: \n", b"data: a\nb", b"data: 1\n\ndata: 2\n\n", b"data:1\n\n",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("before", STATES)
def test_an_event_that_is_a_piece_of_its_own_is_like_any_other(before: bytes, piece: bytes) -> None:
    pieces = (WHOLE, before, piece, WHOLE, WHOLE)
    assert decode(*pieces) == decode(*(bytes([byte]) for byte in b"".join(pieces)))
    assert decode(before, piece) == decode(*(bytes([byte]) for byte in before + piece))


def seconds_for(pieces: int) -> float:
    decoder = SSEDecoder()
    decoder.feed(b"data: ")
    started = time.process_time()
    for _ in range(pieces):
        assert decoder.feed(b"x" * 100) == []
    assert [len(event.data) for event in decoder.feed(b"\n\n")] == [100 * pieces]
    return time.process_time() - started


def test_a_long_event_in_small_pieces_costs_no_more_a_piece() -> None:
    short, long = (min(seconds_for(pieces) for _ in range(3)) for pieces in (5_000, 40_000))
    assert long < 8 * 4 * short
