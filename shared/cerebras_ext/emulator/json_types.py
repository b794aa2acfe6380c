"""Names for JSON values."""

from __future__ import annotations

from typing import Any

JsonObject = dict[str, Any]
"""A JSON object whose members are those of the wire."""
