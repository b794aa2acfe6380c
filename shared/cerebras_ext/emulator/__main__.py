"""`python -m cerebras_ext.emulator --port N`: run the emulator until interrupted."""

from __future__ import annotations

import argparse
import contextlib
import threading

from cerebras_ext.emulator.server import Emulator


def main() -> None:
    """Run the emulator in the foreground."""
    parser = argparse.ArgumentParser(
        prog="python -m cerebras_ext.emulator", description="A local stand-in for the Cerebras inference service."
    )
    parser.add_argument("--port", type=int, default=8080, help="port to listen on; 0 for a free one (default: 8080)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--api-key", help="the only key to accept (default: any)")
    parser.add_argument("--pace", type=float, default=0.0, help="seconds before each chunk of a stream (default: 0)")
    options = parser.parse_args()
    with Emulator(options.port, host=options.host, api_key=options.api_key, pace=options.pace) as emulator:
        print(f"Emulator of the Cerebras service on {emulator.base_url}, stop with Ctrl-C", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
