"""Has the notebook try each K of the range it names, and runs it."""

# %%
import json
from pathlib import Path

path = Path.home() / "Desktop" / "KNN.ipynb"
notebook = json.loads(path.read_text())
for cell in notebook["cells"]:
    cell["source"] = "".join(cell["source"])
[search] = [cell for cell in notebook["cells"] if "TODO" in cell["source"]]
print(search["source"])
# %%
# The 39 neighbours are searched once: what a KNN regressor predicts is the mean over the first K of them.
loop = """
nearest = KNeighborsRegressor(n_neighbors=39).fit(X_train, y_train).kneighbors(X_test, return_distance=False)
values = y_train.to_numpy()[nearest]
for k in range(1, 40):
    error.append(mean_absolute_error(y_test, values[:, :k].mean(axis=1)))
"""
before, after = search["source"].split("\n\nprint(")
search["source"] = f"{before}{loop}\nprint({after}"
# The notebook was made in Pyodide; the kernel it names does not exist here.
notebook["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
path.write_text(json.dumps(notebook, indent=1))
print(search["source"])
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
print([output.get("text") for cell in notebook["cells"] for output in cell.get("outputs", [])][-1])
# %%
final_answer("the notebook shows the K with the lowest error, and is saved")
