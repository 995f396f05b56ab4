"""Counts the Games of each season from the lists of athletes."""

# %%
from pathlib import Path

import pandas as pd

desktop = Path.home() / "Desktop"
print((desktop / "allGames.csv").read_text())
athletes = {season: pd.read_csv(desktop / f"Athletes_{season.lower()}_games.csv") for season in ("Winter", "Summer")}
print(athletes["Winter"].head(3))
# %%
counts = pd.read_csv(desktop / "allGames.csv")
counts["Total # of Games"] = [athletes[season]["Games"].nunique() for season in counts["Season"]]
counts.to_csv(desktop / "allGames.csv", index=False)
print((desktop / "allGames.csv").read_text())
# %%
final_answer("allGames.csv holds the number of Winter and Summer Games")
