import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_local_model_reports_to_nobody(tmp_path: Path) -> None:
    """onnxruntime's reporting leaves a session file in the temporary directory when it is on."""
    subprocess.run(
        [sys.executable, "-c", "import providers.local.embedding"],
        env={"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        check=True,
    )
    assert list(tmp_path.iterdir()) == []
