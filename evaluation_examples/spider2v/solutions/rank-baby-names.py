"""Asks the list of baby names, by SQL, for those that each of its years has."""

# %%
import sqlite3
from pathlib import Path

import pandas as pd

desktop = Path.home() / "Desktop"
print((desktop / "result.csv").read_text())
names = pd.read_csv(desktop / "usa_baby_names.csv")
print(names.describe(include="all"))
# %%
QUERY = """
SELECT first_name, SUM(num) AS total_num
FROM baby_names
GROUP BY first_name
HAVING COUNT(DISTINCT year) = (SELECT COUNT(DISTINCT year) FROM baby_names)
ORDER BY total_num DESC, first_name
"""
connection = sqlite3.connect(desktop / "baby_names.db")
names.to_sql("baby_names", connection, if_exists="replace", index=False)
pd.read_sql_query(QUERY, connection).to_csv(desktop / "result.csv", index=False)
connection.close()
print((desktop / "result.csv").read_text())
# %%
final_answer("result.csv lists the names that appear in all years")
