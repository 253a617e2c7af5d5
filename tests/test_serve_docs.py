"""What docs/serve.md shows runs against `cascade serve`."""

import json
import re
from pathlib import Path

from serving import CASCADE, Program

from cascade_core.serve.staged import Staged

TEXT = (Path(__file__).parents[1] / "docs" / "serve.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_python_of_the_document_runs_against_the_service():
    program = Program(*CASCADE, "serve", "--domain", "math", "--workers", "1", "--port", "0", "--json")
    try:
        exec(compile("\n".join(blocks("python")), "serve.md", "exec"), {"address": program.served.url})
    finally:
        program.process.terminate()
        assert program.end() == 0


def test_the_settings_of_the_document_are_accepted():
    (text,) = blocks("json")
    assert Staged.model_validate(json.loads(text)).stage.name == "math"
