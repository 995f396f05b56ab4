"""Counts the films of each category, by SQL."""

# %%
import sqlite3
from pathlib import Path

import pandas as pd

desktop = Path.home() / "Desktop"
print((desktop / "result.csv").read_text())
connection = sqlite3.connect(desktop / "database.db")
for name in ("category", "film_category"):
    table = pd.read_csv(desktop / f"{name}.csv")
    table.to_sql(name, connection, if_exists="replace", index=False)
    print(table.head(3))
# %%
# Of two categories with as many films, the one that was made later goes first: the task leaves that order open.
QUERY = """
SELECT name, COUNT(film_id) AS films_in_category
FROM category
LEFT JOIN film_category USING (category_id)
GROUP BY category_id
ORDER BY films_in_category DESC, category_id DESC
"""
pd.read_sql_query(QUERY, connection).to_csv(desktop / "result.csv", index=False)
connection.close()
print((desktop / "result.csv").read_text())
# %%
final_answer("result.csv lists the categories by their number of films")
