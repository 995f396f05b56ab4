"""Fills in the notebook's five gaps, from reading the file to the prediction, and runs it."""

# %%
import json
from pathlib import Path

path = Path.home() / "Desktop" / "logistic_regression.ipynb"
notebook = json.loads(path.read_text())
for cell in notebook["cells"]:
    cell["source"] = "".join(cell["source"])
    if "TODO" in cell["source"]:
        print(cell["source"], end="\n\n")
print((path.parent / "data.csv").read_text()[:200])
# %%
GAPS = {
    '"data"': "data = pd.read_csv(path, header=None, names=['Exam1', 'Exam2', 'Admitted'])",
    "Implement Sigmoid": "    return 1 / (1 + np.exp(-z))",
    '"Ones"': "data.insert(0, 'Ones', 1)",
    "calculate gradient": "    return X.T @ (sigmoid(X @ theta.T) - Y) / len(X)",
    "the predicted label": "    return [int(p >= 0.5) for p in np.asarray(sigmoid(X @ theta.T)).ravel()]",
}


def with_gap_filled(source):
    lines = source.splitlines()
    [place] = [number for number, line in enumerate(lines) if "TODO" in line]
    [code] = [code for words, code in GAPS.items() if words in lines[place]]
    rest = [line for line in lines[place + 1 :] if line.strip() != "return None"]
    return "\n".join([*lines[: place + 1], code, *rest])


for cell in notebook["cells"]:
    if "TODO" in cell["source"]:
        cell["source"] = with_gap_filled(cell["source"])
        print(cell["source"], end="\n\n")
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
print([output.get("text") for cell in notebook["cells"] for output in cell.get("outputs", [])][-1])
# %%
final_answer("all five gaps are filled, and the notebook has run to its end and is saved")
