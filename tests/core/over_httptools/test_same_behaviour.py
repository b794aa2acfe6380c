"""The same tests as for the default transport; see conftest.py."""

from tests.core.over_aiohttp.test_same_behaviour import *  # noqa: F403
