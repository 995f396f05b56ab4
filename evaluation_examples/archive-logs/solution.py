"""Packs with tar, checks the archive, then deletes."""

# %%
import subprocess
from pathlib import Path

logs = Path.home() / "Desktop" / "logs"
names = sorted(path.name for path in logs.glob("*2024*.log"))
subprocess.run(["tar", "-czf", "logs-2024.tar.gz", *names], cwd=logs, check=True)
print(subprocess.run(["tar", "-tzf", "logs-2024.tar.gz"], cwd=logs, check=True, capture_output=True, text=True).stdout)
# %%
for name in names:
    (logs / name).unlink()
print(sorted(path.name for path in logs.iterdir()))
# %%
final_answer(f"packed and deleted {len(names)} log files")
