import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_checked_in_code_is_what_the_proto_generates(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "proto" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.generate(tmp_path)
    assert module.generated(ROOT / "client") == module.generated(tmp_path), "run `make proto`"
