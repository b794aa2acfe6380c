"""The Cerebras inference API: typed requests and responses of both endpoints, a sync and an async client."""

from cerebras_ext import errors, types
from cerebras_ext._version import __version__
from cerebras_ext.assembly import ChatDelta, CompletionDelta
from cerebras_ext.client import AsyncClient, Client
from cerebras_ext.errors import CerebrasError
from cerebras_ext.keywords import CallOptions, ChatKeywords, ClientOptions, CompletionKeywords
from cerebras_ext.ratelimit import RateLimit, RateLimits, ResponseInfo
from cerebras_ext.settings import AsyncHTTPClient, HTTPClient, Timeout
from cerebras_ext.streams import AsyncChatStream, AsyncCompletionStream, ChatStream, CompletionStream
from cerebras_ext.toolcalls import ToolCallDelta
from cerebras_ext.types import ChatRequest, ChatResponse, CompletionRequest, CompletionResponse

__all__ = [
    "AsyncChatStream",
    "AsyncClient",
    "AsyncCompletionStream",
    "AsyncHTTPClient",
    "CallOptions",
    "CerebrasError",
    "ChatDelta",
    "ChatKeywords",
    "ChatRequest",
    "ChatResponse",
    "ChatStream",
    "Client",
    "ClientOptions",
    "CompletionDelta",
    "CompletionKeywords",
    "CompletionRequest",
    "CompletionResponse",
    "CompletionStream",
    "HTTPClient",
    "RateLimit",
    "RateLimits",
    "ResponseInfo",
    "Timeout",
    "ToolCallDelta",
    "__version__",
    "errors",
    "types",
]
