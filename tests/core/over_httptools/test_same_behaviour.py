"""The same tests as for the default transport; see conftest.py."""

from tests.core.over_aiohttp.test_same_behaviour import *  # noqa: F403
from tests.core.test_streams_left_early import *  # noqa: F403

pytestmark: list[object] = []  # see there
