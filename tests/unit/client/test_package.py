import ast
import subprocess
import sys
from pathlib import Path

import mnemostream
import pytest


@pytest.mark.parametrize("name", mnemostream.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(mnemostream, name).__name__ == name
    assert name in dir(mnemostream)


def test_what_type_checkers_see_is_what_loads() -> None:
    source = Path(str(mnemostream.__file__)).read_text(encoding="utf-8")
    shown = {
        alias.name
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert shown == set(mnemostream.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        mnemostream.no_such_name  # noqa: B018 - the look-up is the test


def test_importing_the_package_and_the_publisher_loads_no_kafka_client() -> None:
    code = "import sys, mnemostream; mnemostream.Publisher, mnemostream.decode_turn; print('aiokafka' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"
