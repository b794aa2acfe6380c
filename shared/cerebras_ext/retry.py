"""Whether and when a failed request is repeated: pure decisions, no clock but the one that is passed in."""

from __future__ import annotations

import random
from dataclasses import dataclass

from cerebras_ext.errors import APIStatusError, CerebrasError

FIRST_DELAY = 0.5
LONGEST_DELAY = 8.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long.

    Attributes:
        max_retries: Repetitions after the first request; exactly `1 + max_retries` requests are made at most.
        max_retry_wait: Seconds; where the service asks for a longer wait the error is raised at once.
    """

    max_retries: int = 2
    max_retry_wait: float = 60.0


class RetryState:
    """Counts the requests of one call."""

    __slots__ = ("_policy", "_random", "attempts")

    def __init__(self, policy: RetryPolicy, random_: random.Random | None = None) -> None:
        self._policy = policy
        self._random = random_ or _RANDOM
        self.attempts = 0

    def delay(self, error: CerebrasError) -> float | None:
        """Return the seconds to wait before the next request, or None where the error has to be raised.

        The service's `retry-after` is taken as it is; otherwise the wait doubles from 0.5 s to 8 s, with up to a
        quarter taken off at random so that many clients do not come back at once.
        """
        retry_number = self.attempts
        self.attempts += 1
        if not error.is_retryable:
            return None
        asked = error.retry_after if isinstance(error, APIStatusError) else None
        if asked is not None and asked > self._policy.max_retry_wait:
            error.is_retryable = False
            return None
        if retry_number >= self._policy.max_retries:
            return None
        if asked is not None:
            return asked
        return min(FIRST_DELAY * 2.0 ** min(retry_number, 16), LONGEST_DELAY) * (1 - 0.25 * self._random.random())


_RANDOM = random.SystemRandom()
"""Has no state that forked workers would share, and leaves the program's own random numbers alone."""
