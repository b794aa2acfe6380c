"""The same tests as for the default transport; see conftest.py."""

from tests.core.test_errors import *  # noqa: F403
from tests.core.test_hostile import *  # noqa: F403
from tests.core.test_lifecycle import *  # noqa: F403
from tests.core.test_proxy import *  # noqa: F403
from tests.core.test_retry import *  # noqa: F403
from tests.core.test_robustness import *  # noqa: F403
from tests.core.test_streams import *  # noqa: F403
from tests.core.test_streams_left_early import *  # noqa: F403
from tests.core.test_timeout_mapping import *  # noqa: F403
from tests.core.test_tracebacks import *  # noqa: F403

# aiohttp's connections warn of this themselves, when they are collected.
del test_a_stream_that_is_dropped_as_its_loop_ends_warns_of_nothing  # noqa: F821

pytestmark: list[object] = []  # the mark of a module comes with its tests, and would be on all of these
