"""Fills in the notebook's three gaps, the last of which scales the features, and runs it."""

# %%
import json
from pathlib import Path

path = Path.home() / "Desktop" / "data_scaling.ipynb"
notebook = json.loads(path.read_text())
for cell in notebook["cells"]:
    cell["source"] = "".join(cell["source"])
    if "TODO" in cell["source"]:
        print(cell["source"], end="\n\n")
# %%
GAPS = {
    "TODO1": "df.head()",
    "TODO2": "X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=SEED)",
    "TODO3": "scaler = StandardScaler().fit(X_train)\nX_train, X_test = map(scaler.transform, (X_train, X_test))",
}
for gap, code in GAPS.items():
    [cell] = [cell for cell in notebook["cells"] if gap in cell["source"]]
    lines = cell["source"].splitlines()
    [place] = [number for number, line in enumerate(lines) if gap in line]
    lines.insert(place + 1, code)
    cell["source"] = "\n".join(lines).rstrip()
    print(cell["source"], end="\n\n")
# The notebook was made in Pyodide; the kernel it names does not exist here.
notebook["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
path.write_text(json.dumps(notebook, indent=1))
# %%
import subprocess

script = (
    "source ~/anaconda3/etc/profile.d/conda.sh && conda activate jupyter"
    f" && jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.timeout=1200 '{path}'"
)
run = subprocess.Popen(["bash", "-c", script], stderr=subprocess.PIPE, text=True)


def waited():
    """Wait for the run as long as one step may last; on a busy machine it needs more than one."""
    try:
        return run.communicate(timeout=240)[1][-2000:], run.returncode
    except subprocess.TimeoutExpired:
        return "still running"


print(waited())
# %%
print(waited())
# %%
print(waited())
# %%
print(waited())
# %%
notebook = json.loads(path.read_text())
print([output["data"]["text/plain"] for output in notebook["cells"][-1]["outputs"]])
# %%
final_answer("the features are scaled, and the notebook has run to its end and is saved")
