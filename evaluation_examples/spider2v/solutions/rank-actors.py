"""Asks the film rental's database, by SQL, whose films were rented the most."""

# %%
import sqlite3
from pathlib import Path

import pandas as pd

desktop = Path.home() / "Desktop"
print((desktop / "result.csv").read_text())
connection = sqlite3.connect(desktop / "database.db")
print("\n".join(sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table'")))
# %%
QUERY = """
SELECT actor_id, first_name, last_name, COUNT(rental_id) AS rented_times
FROM actor
JOIN film_actor USING (actor_id)
JOIN inventory USING (film_id)
JOIN rental USING (inventory_id)
GROUP BY actor_id
ORDER BY rented_times DESC
LIMIT 10
"""
pd.read_sql_query(QUERY, connection).to_csv(desktop / "result.csv", index=False)
connection.close()
print((desktop / "result.csv").read_text())
# %%
final_answer("result.csv lists the ten actors whose films were rented the most")
