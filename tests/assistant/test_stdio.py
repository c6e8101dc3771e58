"""`gamelens mcp` as an assistant starts it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import msgspec
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

RECORDED = Path(__file__).parents[2] / "data" / "recorded"


def test_the_command_answers_over_standard_input_and_output() -> None:
    """Eight tools are listed, and a number comes with the receipt of the replay that it is from."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "gamelens", "mcp"],
        env={**os.environ, "GAMELENS_REPLAY": str(RECORDED)},
    )

    async def look() -> tuple[int, str]:
        async with Client(stdio_client(server)) as client:
            answered = await client.call_tool("catalogue", {"of": "available"})
            return len((await client.list_tools()).tools), answered.content[0].text  # type: ignore[union-attr]

    tools, text = asyncio.run(look())
    assert tools == 8
    assert msgspec.json.decode(text)["available"]
