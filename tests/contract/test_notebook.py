"""The notebook runs from its first cell to its last, as a script: no kernel is needed for that."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[2] / "examples" / "quickstart.ipynb"


def cells() -> list[dict[str, Any]]:
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


def test_it_runs(tmp_path: Path) -> None:
    code = ["".join(cell["source"]) for cell in cells() if cell["cell_type"] == "code"]
    script = tmp_path / "notebook.py"
    script.write_text("\n\n".join(code), encoding="utf-8")
    said = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert said.returncode == 0, said.stderr
    assert "Success(rate=" in said.stdout
    assert "report.html" in said.stdout


def test_no_results_are_stored_in_it() -> None:
    """Outputs would be of one machine, and change with every run."""
    assert not any(cell.get("outputs") for cell in cells())
