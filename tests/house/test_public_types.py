"""Public types as mypy sees them in a user's project, and the marker that ships them."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gamelens

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "user_script.py"
TREE = ast.parse(SCRIPT.read_text())
CALLS = [node for node in ast.walk(TREE) if isinstance(node, ast.Call)]
CLIENTS = {"Client": False, "AsyncClient": True}


MISTAKES = {
    "a wrong type of element": "gl.Client().metrics().append(1)",
    "a missing argument": "gl.Client().query('revenue')",
    "an unknown argument": "gl.Client().query('revenue', over='2026-11-01', untill='2026-11-02')",
    "a literal that is not allowed": "gl.Client().query('revenue', over='2026-11-01', every='hour')",
    "an unknown pace": "gl.Client(pace='fast')",
    "an unknown setting": "gl.connect(cahce=False)",
    "a setting of another service": "gl.demo('small', api_key='…')",
    "a wrong type of answer": "x: int = gl.Client().available()",
    "a coroutine not awaited": "gl.AsyncClient().available().start",
    "an unknown field of an error": "gl.Truncated(1).limits",
    "an unknown name": "gl.no_such_name",
}


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int]]:
    """Return file and line of each error that mypy finds outside this project."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "script.py").write_text(SCRIPT.read_text())
    (folder / "mistakes.py").write_text("\n".join(["import gamelens as gl", *MISTAKES.values()]))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir=/dev/null"]
    files = ["script.py", "mistakes.py"]
    result = subprocess.run([*command, *files], capture_output=True, text=True, cwd=folder, check=False)
    lines = [line.split(":") for line in result.stdout.splitlines() if ": error:" in line]
    return [(line[0], int(line[1])) for line in lines]


@pytest.mark.slow
def test_a_user_script_passes_mypy_strict(errors: list[tuple[str, int]]) -> None:
    """A script that uses every public name has no error under `mypy --strict`."""
    assert [line for file, line in errors if file == "script.py"] == []


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mypy_finds_each_mistake(errors: list[tuple[str, int]], mistake: str) -> None:
    """Negative control: types that accept everything would pass the other test as well."""
    assert ("mistakes.py", 2 + list(MISTAKES).index(mistake)) in errors


def test_the_script_names_everything_public() -> None:
    """The script uses every name of `gamelens.__all__`."""
    named = {node.attr for node in ast.walk(TREE) if isinstance(node, ast.Attribute)}
    named |= {alias.name for node in ast.walk(TREE) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert named >= set(gamelens.__all__)


def arguments(name: str, *, is_awaited: bool) -> set[str]:
    """Return the keywords of the calls to method *name*, of the awaited ones or the others."""
    awaited = {id(node.value) for node in ast.walk(TREE) if isinstance(node, ast.Await)}
    calls = [call for call in CALLS if isinstance(call.func, ast.Attribute) and call.func.attr == name]
    calls = [call for call in calls if (id(call) in awaited) == is_awaited]
    return {keyword.arg or "" for call in calls for keyword in call.keywords}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_script_uses_every_method_with_every_argument(client: str) -> None:
    """The script calls every public method of both clients with every keyword it has."""
    class_ = getattr(gamelens, client)
    methods = inspect.getmembers(class_, inspect.isfunction)
    public = {name: method for name, method in methods if not name.startswith("_")}
    missing = {}
    for name, method in public.items():
        parameters = inspect.signature(method).parameters.values()
        names = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
        if left := names - arguments(name, is_awaited=CLIENTS[client]):
            missing[name] = left
    assert missing == {}
    called = {call.func.attr for call in CALLS if isinstance(call.func, ast.Attribute)}
    assert set(public) <= called


@pytest.mark.parametrize("client", CLIENTS)
def test_the_script_makes_each_client_with_every_argument(client: str) -> None:
    """The script constructs both clients with every argument but `transport`."""
    calls = [call for call in CALLS if isinstance(call.func, ast.Attribute) and call.func.attr == client]
    used = {keyword.arg for call in calls for keyword in call.keywords}
    parameters = {*inspect.signature(getattr(gamelens, client)).parameters} - {"transport"}  # its type is from httpx
    assert used >= parameters


def test_the_types_are_shipped() -> None:
    """The wheel takes the whole package folder along, `py.typed` included."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["src/gamelens"]
    assert not {"exclude", "only-include"} & set(wheel)
    assert (ROOT / "src" / "gamelens" / "py.typed").read_bytes() == b""
