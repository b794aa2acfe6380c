"""A local stand-in for the service, for tests, demonstrations and benchmarks without a key.

    with Emulator() as emu:
        client = Client(api_key="any", base_url=emu.base_url)

Its answers can be told from the service's by `system_fingerprint` and by the response header
`x-cerebras-ext-emulator`.
"""

from cerebras_ext.emulator.catalog import ModelCard
from cerebras_ext.emulator.faults import Fault
from cerebras_ext.emulator.messages import ReceivedRequest
from cerebras_ext.emulator.server import Emulator

__all__ = ["Emulator", "Fault", "ModelCard", "ReceivedRequest"]
