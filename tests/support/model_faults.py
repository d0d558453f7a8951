"""The faults that the model server knows, by name: which there are, and what kind each is. ``model_replies`` sends them."""

from typing import Any

STATUS: dict[str, tuple[int, dict[str, Any]]] = {
    "408": (408, {"message": "timeout", "type": "timeout"}),
    "409": (409, {"message": "lock timeout", "type": "conflict"}),
    "429": (429, {"message": "Rate limit reached", "type": "rate_limit_error", "code": "rate_limit_exceeded"}),
    "500": (500, {"message": "The server had an error", "type": "server_error"}),
    "503": (503, {"message": "Overloaded", "type": "overloaded_error"}),
    "529": (529, {"message": "Overloaded", "type": "overloaded_error"}),
    "quota": (429, {"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"}),
    "402": (402, {"message": "Payment required"}),
    "credit": (400, {"message": "Your credit balance is too low", "type": "invalid_request_error"}),
    "401": (401, {"message": "Incorrect API key provided", "code": "invalid_api_key"}),
    "403": (403, {"message": "You are not allowed", "type": "permission_error"}),
    "no_model": (404, {"message": "The model `x` does not exist", "code": "model_not_found"}),
    "no_model_anthropic": (404, {"message": "model: claude-x", "type": "not_found_error"}),
    "too_long": (400, {"message": "This model's maximum context length is 10, reduce max_tokens", "code": "context_length_exceeded"}),
    "too_long_llama": (400, {"message": "request exceeds the available context size", "type": "exceed_context_size_error"}),
    "too_long_vllm": (400, {"message": "This model's maximum context length is 4096 tokens", "type": "BadRequestError"}),
    "too_long_anthropic": (400, {"message": "prompt is too long: 210000 tokens", "type": "invalid_request_error"}),
    "too_large": (413, {"message": "Request too large", "type": "request_too_large"}),
    "400": (400, {"message": "Invalid value for 'n'", "type": "invalid_request_error"}),
    "limit_too_large": (400, {"message": "max_tokens is too large: 9. At most 5.", "param": "max_tokens"}),
    "no_tools_ollama": (400, {"message": "registry.ollama.ai/library/x:latest does not support tools", "type": "api_error"}),
    "no_tools_vllm": (400, {"message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'}),
    "no_tools_router": (404, {"message": "No endpoints found that support tool use", "code": 404}),
    "bad_tool_schema": (400, {"message": "Invalid schema for function 'read': no object", "param": "tools[0].function"}),
    "bad_schema": (400, {"message": "Invalid schema for response_format 'answer': too many unions", "param": "response_format"}),
    "bad_schema_anthropic": (400, {"message": "output_config.format.schema: too many parameters with union types"}),
    "no_custom": (400, {"message": "Invalid value: 'custom'. Supported values are: 'function'.", "param": "tools[0].type"}),
    "bad_grammar": (400, {"message": "Invalid grammar: lark syntax error in line 3"}),
    "422": (422, {"message": "unprocessable"}),
    "filtered": (400, {"message": "content management policy", "code": "content_filter"}),
}  # fmt: skip
"""Faults that are a status and an error object."""

RETRIED = (
    "408",
    "409",
    "429",
    "429_seconds",
    "500",
    "503",
    "529",
    "html_502",
    "reset",
    "close",
    "headers_cut",
    "body_cut",
)
"""One-off faults that an SDK's own retries get over (not streamed)."""

AGAIN = (
    "chunk_cut", "json_cut", "not_utf8", "not_object", "empty_body", "duplicate_keys", "no_choices", "null_choices",
    "no_message", "null_content", "empty_content", "blank_content", "length", "no_finish", "odd_finish", "error_in_200",
    "surrogate", "gzip_cut", "gzip_bad", "huge", "bomb", "encoding",
)  # fmt: skip
"""One-off faults in a 200: an answer that must not be taken."""

STREAMED = (
    "stream_cut", "stream_cut_inside", "stream_no_finish", "stream_reset", "stream_bad_json", "stream_error", "stream_empty",
    "stream_length", "stream_duplicate_keys", "stream_surrogate", "stream_not_utf8", "stream_utf8_cut", "stream_bad_line",
    "stream_closed", "stream_reset_at_once", "stream_reset_as_json",
)  # fmt: skip
"""One-off faults in a streamed answer."""

BROKEN = ("stream_cut", "stream_reset", "stream_reset_at_once", "stream_reset_as_json", "body_cut", "chunk_cut")
"""Faults of the connection inside the body of an answer that was asked for as a stream."""

SLOW = ("hang", "trickle", "stream_trickle", "stream_stall", "endless")
"""Bodies that do not end (``endless`` is fast, the others are not)."""
