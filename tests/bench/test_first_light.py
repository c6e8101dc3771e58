"""A million events from players to lake, beside a floor that does only what nobody can leave out.

Run by `make bench`; prints each figure as a ratio to its floor in the same run.
"""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import duckdb
import msgspec
import pytest

from gamelens.client.connection.control_api import ControlApi
from gamelens.local.sandbox_info import SandboxInfo
from gamelens.local.sandbox_population import populate
from gamelens.local.sandbox_process import call_console, running_sandbox
from gamelens.simulator import load_scenario, play
from gamelens.wire.signing import sign

ENDS_ON = date(2026, 11, 20)
TEXTS = (
    "category user_id session_id event_uuid country_code platform build ad_sdk_name ad_type ad_action ad_network_name "
    "install_publisher ab_id ab_variant_id severity currency"
)
FIELDS = dict.fromkeys(TEXTS.split(), "VARCHAR") | dict.fromkeys(("length", "amount", "client_ts"), "BIGINT")
FIELDS["impression_data"] = "JSON"


@pytest.fixture(scope="module")
def demo_sandbox(tmp_path_factory: pytest.TempPathFactory):
    with running_sandbox(tmp_path_factory.mktemp("bench") / "state") as ready:
        yield ready


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def test_simulate_submit_and_process(demo_sandbox: SandboxInfo, tmp_path: Path) -> None:
    """Issues: under 90 s for 1,000,000 events, under 20 s until they are acknowledged, and no process over 2 GiB.

    The 20 s are of two cores: they count where others leave both.
    """
    is_ours_alone = os.getloadavg()[0] < 1
    scenario = load_scenario("demo")
    plain = tmp_path / "plain"
    plain.mkdir()

    def submit_floor() -> None:
        for number, batch in enumerate(play(scenario, ends_on=ENDS_ON)):
            body = gzip.compress(batch.body, 1)
            sign(body, secret_key="0" * 40)
            msgspec.json.decode(gzip.decompress(body))
            (plain / f"{number}.json").write_bytes(batch.body)

    def process_floor() -> None:
        out = tmp_path / "floor.parquet"
        columns = ", ".join(f"{name}: '{kind}'" for name, kind in FIELDS.items())
        with duckdb.connect(config={"preserve_insertion_order": False}) as engine:
            engine.execute(f"COPY (FROM read_json('{plain}/*.json', columns = {{{columns}}})) TO '{out}'")

    submit_floor_s, process_floor_s = seconds(submit_floor), seconds(process_floor)
    events = 0

    def submit() -> None:
        nonlocal events
        events = populate(demo_sandbox, scenario, ends_on=ENDS_ON).events

    submit_s, process_s = seconds(submit), seconds(lambda: call_console(demo_sandbox, ControlApi.process))
    peak_mib = _peak_mib(demo_sandbox.pid)
    print(
        f"\n{events:,} events; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
        f"  simulate + submit  {submit_s:5.1f} s  {submit_s / submit_floor_s:4.1f} x gzip, sign and parse alone\n"
        f"  process            {process_s:5.1f} s  {process_s / process_floor_s:4.1f} x read_json to Parquet\n"
        f"  sandbox peak       {peak_mib:5.0f} MiB"
    )
    assert (submit_s + process_s) * 1e6 / events < 90
    assert submit_s * 1e6 / events < 20 or not is_ours_alone
    assert peak_mib < 2048


def _peak_mib(pid: int | None) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
