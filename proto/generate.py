"""Generates the code of the RPC again, offline: `make proto`.

Messages by protoc-gen-py, client and server stubs by protoc-gen-connectrpc, both from the locked packages; the compiler
is the one inside grpcio-tools. A test compares what is checked in with what this makes.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

PROTO: Final = Path(__file__).resolve().parent
CLIENT: Final = PROTO.parent / "client"
PACKAGE: Final = Path("mnemostream/v1")
_INIT: Final = '"""Generated from proto/ by proto/generate.py: don\'t edit."""\n'


def generate(out: Path) -> None:
    """Write `mnemostream/v1/…` under `out`; the messages of google.rpc go below it, beside nothing of others."""
    package = out / PACKAGE
    package.mkdir(parents=True, exist_ok=True)
    plugins = ["--py_opt=init_files=false", f"--py_out={out}", f"--connectrpc_out={out}"]
    _protoc(plugins, "mnemostream/v1/memory_service.proto")
    details = ["--py_opt=init_files=false", f"--py_out={package}"]
    _protoc(details, "google/rpc/status.proto", "google/rpc/error_details.proto")
    for folder in (package, package / "google", package / "google" / "rpc"):
        (folder / "__init__.py").write_text(_INIT, encoding="utf-8")


def _protoc(options: list[str], *files: str) -> None:
    import grpc_tools

    well_known = Path(grpc_tools.__file__).parent / "_proto"
    scripts = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", f"-I{well_known}", *options, *files]
    subprocess.run(command, check=True, cwd=PROTO, env=environment)


def generated(out: Path) -> dict[str, str]:
    """What lies under `out` of the generated package: text by relative path."""
    package = out / PACKAGE
    return {path.relative_to(out).as_posix(): path.read_text("utf-8") for path in sorted(package.rglob("*.py"))}


def main() -> int:
    """Replace what is checked in; what is no longer generated is removed."""
    with tempfile.TemporaryDirectory() as scratch:
        generate(Path(scratch))
        fresh = generated(Path(scratch))
    for name in generated(CLIENT).keys() - fresh.keys():
        (CLIENT / name).unlink()
    for name, text in fresh.items():
        path = CLIENT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{len(fresh)} files under {CLIENT / PACKAGE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
