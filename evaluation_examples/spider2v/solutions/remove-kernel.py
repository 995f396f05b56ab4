"""Removes the kernel spec by the name under which it is installed."""

# %%
import json
import subprocess


def in_jupyter(command):
    script = f"source ~/anaconda3/etc/profile.d/conda.sh && conda activate jupyter && {command}"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=240).stdout


specs = json.loads(in_jupyter("jupyter kernelspec list --json"))["kernelspecs"]
print({name: found["spec"]["display_name"] for name, found in specs.items()})
# %%
name = next(name for name, found in specs.items() if found["spec"]["display_name"] == "Python (jupyterlab)")
in_jupyter(f"jupyter kernelspec remove -f {name}")
print(in_jupyter("jupyter kernelspec list"))
# %%
final_answer('the kernel "Python (jupyterlab)" is gone')
