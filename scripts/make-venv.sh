#!/bin/sh
# Print the python of this checkout's virtual environment, made or brought up to date first if need be.
#
#   make-venv.sh demo|dev|bench
set -eu
here=$(cd "$(dirname "$0")" && pwd)
python=$(GOAL="${GOAL:-}" "$here/find-python.sh")
exec "$python" "$here/make_venv.py" "$@"
