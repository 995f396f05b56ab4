"""What a person does with a notebook outside of JupyterLab: edits the file, and has `jupyter nbconvert` run it."""

# %%
import json
import subprocess
from pathlib import Path

DESKTOP = Path.home() / "Desktop"


def opened(path):
    """Return a notebook with the source of each cell in one piece."""
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
    return notebook


def show(notebook, words=""):
    """Print the code of the cells in which the words stand."""
    found = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code" and words in cell["source"]]
    print("\n\n".join(found))


def put(notebook, words, code):
    """Put code below the line in which the words stand, instead of a `return None` there."""
    [cell] = [cell for cell in notebook["cells"] if words in cell["source"]]
    lines = cell["source"].rstrip().splitlines()
    [place] = [number for number, line in enumerate(lines, start=1) if words in line]
    below = [line for line in lines[place:] if line.strip() != "return None"]
    cell["source"] = "\n".join([*lines[:place], code, *below])


def save(notebook, path):
    """Write a notebook, with this machine's kernel instead of one that a browser had."""
    kernel = notebook["metadata"]["kernelspec"]
    if "Pyodide" in kernel["display_name"]:
        kernel.update(name="python3", display_name="Python 3 (ipykernel)")
    path.write_text(json.dumps(notebook, indent=1))


def run(path):
    """Run all cells of a notebook, whose outputs are saved in it then. Return what came of it."""
    script = (
        "source ~/anaconda3/etc/profile.d/conda.sh && conda activate jupyter"
        f" && jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.timeout=1200 '{path}'"
    )
    done = subprocess.run(["bash", "-c", script], stderr=subprocess.PIPE, text=True, timeout=1500)
    return done.stderr[-2000:], done.returncode


def texts(notebook):
    """Return what is shown as text below the cells."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    return ["".join(output.get("text") or output.get("data", {}).get("text/plain", "")) for output in outputs]
