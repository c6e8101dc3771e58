"""`gamelens mcp` as an assistant starts it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

RECORDED = Path(__file__).parents[2] / "data" / "recorded"


def test_the_command_answers_over_standard_input_and_output() -> None:
    """Eight tools are listed, and a number comes with the receipt of the replay that it is from."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

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


@pytest.mark.wide
def test_the_end_of_the_input_ends_a_request_under_way() -> None:
    """Within 2 s and with exit code 0, though the service does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as service:
        service.settimeout(60)
        own = {
            "GAMELENS_API_KEY": "k" * 32,
            "GAMELENS_METRICS_URL": f"http://127.0.0.1:{service.getsockname()[1]}",
        }
        command = [sys.executable, "-m", "gamelens", "mcp"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **own}, text=True
        ) as process:
            assert process.stdin is not None
            hello = {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n")
            process.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
            asked = {"name": "catalogue", "arguments": {"of": "games"}}
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked}) + "\n")
            process.stdin.flush()
            connection, _ = service.accept()
            with connection:
                assert connection.recv(100)
                process.stdin.close()
                began = time.monotonic()
                try:
                    code = process.wait(timeout=30)
                finally:
                    process.kill()
    assert code == 0
    assert time.monotonic() - began < 10
