"""Does the notebook's five steps, from importing the linear SVM to printing its accuracy, and runs it."""

# %%
import json
from pathlib import Path

path = Path.home() / "Desktop" / "SVM.ipynb"
notebook = json.loads(path.read_text())
for cell in notebook["cells"]:
    cell["source"] = "".join(cell["source"])
    print(cell["source"], end="\n\n")
# %%
STEPS = {
    "TODO1": "from sklearn import svm",
    "TODO2": "clf = svm.SVC(kernel='linear')",
    # Followed by a statement, the trained classifier is not shown as the cell's output.
    "TODO3": "clf.fit(X_train, y_train)",
    "TODO4": "y_pred = clf.predict(X_test)",
    "TODO5": "print(metrics.accuracy_score(y_test, y_pred))",
}


def with_steps_done(source):
    lines = []
    for line in source.rstrip().splitlines():
        lines += [line, *(code for step, code in STEPS.items() if line.startswith(f"# {step}"))]
    return "\n".join(lines)


for cell in notebook["cells"]:
    if cell["cell_type"] == "code":
        cell["source"] = with_steps_done(cell["source"])
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
print([output["text"] for output in notebook["cells"][-1]["outputs"]])
# %%
final_answer("the linear SVM is trained, its accuracy is printed, and the notebook is saved")
