"""A short run of the chaos suite; `make chaos` is the long one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
_KINDS = ("worker_kill", "broker_kill", "postgres_crash", "failpoint", "model_garbage")


@pytest.mark.timeout(240)
def test_nothing_is_lost_doubled_or_reordered_while_one_thing_after_the_other_breaks(tmp_path: Path) -> None:
    size = ["--turns", "720", "--owners", "40", "--workers", "2", "--partitions", "4", "--rate", "16"]
    told = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--seeds", "69", *size, "--faults", "5", "--kinds", *_KINDS],
        cwd=_ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MNEMO_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=220,
    )
    assert told.returncode == 0, told.stderr + told.stdout
    assert "nothing lost, doubled or reordered" in told.stdout
    for kind in _KINDS:
        assert f"| {kind} " in told.stdout
