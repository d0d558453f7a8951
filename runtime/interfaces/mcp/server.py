"""Assembles the server: the SDK's low-level server with tools, resources and prompts. The server works with any transport."""

import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Tool as McpTool
from pydantic import ValidationError

from ....lang.diagnostic import nearest, printable
from ...api.process_traces import begin, remote_parent
from ...excerpts import storable
from ..http.middleware import internal_error, warn_of_traces
from .long_calls import ReportProgress
from .resources import PROMPTS, TEMPLATES, Unknown, prompt_of, read, resources
from .tool_errors import ToolError, argument_error
from .tools import tool as ours
from .tools.check_tools import CHECK, EXPLAIN
from .tools.evaluation_tools import EVALUATE
from .tools.run_tools import EXECUTE, RUN_LWT, RUN_PLAN
from .tools.seed_tools import SEED_CHECK, SEED_COMPUTE
from .tools.state_tools import PAGE, ROLLBACK, SCHEMA, SESSION, STATE_DIFF, STATE_SHOW
from .tools.tool import Call, Tool
from .workspace import LOCAL, ServerWorkspace

# All tools by name, in the order in which clients see them.

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        SCHEMA, CHECK, EXPLAIN, RUN_PLAN, EXECUTE, SESSION, STATE_SHOW, STATE_DIFF, ROLLBACK, RUN_LWT, SEED_CHECK, SEED_COMPUTE,
        EVALUATE, PAGE
    )
}  # fmt: skip


# Runs a tool call, from the received arguments to the sent result. Clients never receive tracebacks.


@frozen
class SentResult:
    """A result as it is sent: a structure, the same structure as JSON text, and whether the call failed."""

    structure: dict[str, Any]
    text: str
    failed: bool


def unknown(name: str, workspace: ServerWorkspace) -> str:
    """Return a message that explains why the server does not offer the tool ``name``; "" if it offers the tool."""
    tool = TOOLS.get(name)
    if tool is not None:
        why = tool.absent(workspace)
        return f"{name} is not offered: {why}" if why else ""
    offered = [each for each, known in TOOLS.items() if not known.absent(workspace)]
    like = nearest(name, offered)
    return f"unknown tool {printable(name[:80])}; " + (
        f"did you mean {like}?" if like else f"available: {', '.join(offered)}"
    )


async def call_tool(
    name: str,
    arguments: Mapping[str, Any] | None,
    workspace: ServerWorkspace,
    client: str,
    report: ReportProgress,
) -> SentResult:
    """Call the tool ``name`` and return its result. The server must offer the tool."""
    tool = TOOLS[name]
    try:
        try:
            request = tool.takes.model_validate(dict(arguments or {}))
        except ValidationError as error:
            raise argument_error(error, tool.takes) from None
        result = await tool.run(Call(workspace, client, report), request)
        structure = result.model_dump(mode="json")
        failed = structure.get("status") == "refused" or result.error is not None
    except ToolError as refused:
        structure, failed = {"error": refused.as_json()}, True
    except Exception as error:  # the last resort: the client gets only the number of the internal error
        number = internal_error(error).members["error"]
        sent = ToolError("internal", f"internal error {number} (see the server log)", "not caused by the request")
        structure, failed = {"error": sent.as_json()}, True
    structure = storable({name: value for name, value in structure.items() if value is not None and value != ""})
    return SentResult(structure, json.dumps(structure, ensure_ascii=False, separators=(",", ":")), failed)


_Context = ServerRequestContext[Any, Any]

_INSTRUCTIONS = (
    "knotwork checks and runs languages that models and people write: GASL (commands on a graph and a state; plans are "
    "GASL in JSON), LWT (prompt scripts) and Formula Seeds. Read knotwork://language/NAME before you write one. Call check before a run: "
    "each diagnostic has a span and, if a fix is certain, edits; apply them and check again."
)


def create_server(workspace: ServerWorkspace, version: str) -> Server[Any]:
    """Return the server for ``workspace``. One server can serve any number of connections."""
    begin(warn=warn_of_traces)

    async def list_tools(context: _Context, request: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_tool(tool, workspace) for tool in TOOLS.values() if not tool.absent(workspace)])

    async def handle_call(context: _Context, request: CallToolRequestParams) -> CallToolResult:
        if why := unknown(request.name, workspace):
            raise MCPError(INVALID_PARAMS, why)
        meta = context.meta or {}  # the specification reserves ``traceparent`` in it for the trace of the caller
        with remote_parent(meta.get("traceparent")):
            sent = await call_tool(
                request.name, request.arguments, workspace, _client_id(context), context.session.report_progress
            )
        return CallToolResult(
            content=[TextContent(text=sent.text)], structured_content=sent.structure, is_error=sent.failed
        )

    async def list_resources(context: _Context, request: PaginatedRequestParams | None) -> ListResourcesResult:
        found = resources(workspace)
        return ListResourcesResult(
            resources=[Resource(uri=each.uri, name=each.name, title=each.title, mime_type=each.kind) for each in found]
        )

    async def list_templates(context: _Context, request: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(uri_template=template, name=name, title=title, mime_type=kind)
                for template, name, title, kind in TEMPLATES
            ]
        )

    async def read_resource(context: _Context, request: ReadResourceRequestParams) -> ReadResourceResult:
        try:
            found = await read(request.uri, workspace)
        except Unknown:
            raise MCPError(INVALID_PARAMS, "unknown resource", {"uri": request.uri[:500]}) from None
        return ReadResourceResult(contents=[TextResourceContents(uri=found.uri, mime_type=found.kind, text=found.text)])

    async def list_prompts(context: _Context, request: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(
            prompts=[
                Prompt(name=each.name, title=each.title, arguments=_arguments(each.arguments))
                for each in PROMPTS
                if workspace.adapter is not None or not each.graph
            ]
        )

    async def get_prompt(context: _Context, request: GetPromptRequestParams) -> GetPromptResult:
        try:
            text = await prompt_of(request.name, request.arguments or {}, workspace)
        except ToolError as refused:
            raise MCPError(INVALID_PARAMS, refused.message, refused.as_json()) from None
        return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(text=text))])

    return Server(
        "knotwork", version=version, title="knotwork", instructions=_INSTRUCTIONS + _limits(workspace),
        on_list_tools=list_tools, on_call_tool=handle_call, on_list_resources=list_resources,
        on_list_resource_templates=list_templates, on_read_resource=read_resource, on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )  # fmt: skip


def _limits(workspace: ServerWorkspace) -> str:
    """Return sentences that describe whether the server has a graph and a model, and whether its state is read-only."""
    settings, sentences = workspace.settings, []
    sentences.append(
        "The server has a graph."
        if workspace.adapter is not None
        else "The server has no graph: scripts and seeds only."
    )
    if settings.read_only:
        sentences.append("The state is read-only: commands that would change it are refused.")
    if workspace.models.default is None:
        sentences.append("The server has no model: commands and steps that need a model fail.")
    return " " + " ".join(sentences)


def _tool(tool: ours.Tool, workspace: ServerWorkspace) -> McpTool:
    reads = not tool.writes or workspace.settings.read_only
    return McpTool(
        name=tool.name, title=tool.title, description=tool.description, input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=ToolAnnotations(
            title=tool.title, read_only_hint=reads, destructive_hint=not reads, idempotent_hint=tool.again,
            open_world_hint=tool.asks,
        ),
    )  # fmt: skip


def _arguments(named: Mapping[str, str]) -> list[PromptArgument]:
    return [PromptArgument(name=name, description=says, required=True) for name, says in named.items()]


def _client_id(context: _Context) -> str:
    """Return the caller's id. Over HTTP, the access checks have set it; otherwise it is ``LOCAL`` for all callers."""
    state = getattr(context.request, "state", None)
    client = getattr(state, "who", None)
    return str(client.id) if client is not None else LOCAL
