"""Adds up the orders with pandas."""

# %%
from pathlib import Path

import pandas as pd

desktop = Path.home() / "Desktop"
orders = pd.read_csv(desktop / "orders.csv")
print(orders.head())
# %%
totals = orders.groupby("region", as_index=False)["amount"].sum().rename(columns={"amount": "total"})
totals.sort_values("region").to_csv(desktop / "totals.csv", index=False, float_format="%.2f")
print((desktop / "totals.csv").read_text())
# %%
final_answer("totals.csv holds the total of each region")
