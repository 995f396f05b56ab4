"""What a Spider2-V task needs that is not here: an account, a program in the guest, a step, getter or metric.

Known before any machine starts. Source: xlang-ai/Spider2-V, evaluation_examples/README.md (the applications, and which
of them want an account), desktop_env/configs and desktop_env/evaluators/getters (whose steps and getters are whose).
"""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from deskfork.tasks.spider2v.checks import KNOWN_EXPECTED, KNOWN_METRICS, KNOWN_RESULTS
from deskfork.tasks.spider2v.foreign import ForeignTask
from deskfork.tasks.spider2v.steps import KNOWN_STEPS
from deskfork.tasks.summary import Need, NeedKind

APPLICATIONS_HERE = frozenset({"jupyter", "chromium", "terminal", "sqlite3"})
"""Of upstream's applications, those that the guest has."""
_Thing = tuple[NeedKind, str]
_APPLICATIONS: Mapping[str, _Thing] = {
    "snowflake": ("account", "Snowflake"),
    "bigquery": ("account", "Google Cloud"),
    "servicenow": ("account", "ServiceNow"),
    "dbt-cloud": ("account", "dbt Cloud"),
    "dbt_cloud": ("account", "dbt Cloud"),
    "hasura": ("account", "Hasura"),
    "airbyte": ("program", "Airbyte"),
    "airflow": ("program", "Airflow"),
    "astro": ("program", "Airflow"),
    "dagster": ("program", "Dagster"),
    "dbt": ("program", "dbt"),
    "docker": ("program", "Docker"),
    "duckdb": ("program", "DuckDB"),
    "excel": ("program", "LibreOffice"),
    "metabase": ("program", "Metabase"),
    "mysql": ("program", "MySQL"),
    "postgresql": ("program", "PostgreSQL"),
    "superset": ("program", "Superset"),
    "vscode": ("program", "VS Code"),
}
# How the names of steps, getters and metrics begin, the longer beginnings before the shorter.
_PREFIXES: Mapping[str, _Thing] = {
    "snowflake_": ("account", "Snowflake"),
    "is_snowflake_": ("account", "Snowflake"),
    "check_snowflake_": ("account", "Snowflake"),
    "hasura_": ("account", "Hasura"),
    "bigquery_": ("account", "Google Cloud"),
    "gcp_": ("account", "Google Cloud"),
    "google_cloud": ("account", "Google Cloud"),
    "googledrive": ("account", "Google"),
    "googlesheet": ("account", "Google"),
    "workarena_": ("account", "ServiceNow"),
    "dbt_cloud_": ("account", "dbt Cloud"),
    "dbt_project_info": ("account", "dbt Cloud"),
    "dbt_environment_info": ("account", "dbt Cloud"),
    "dbt_job_info": ("account", "dbt Cloud"),
    "dbt_": ("program", "dbt"),
    "dagster_cloud_": ("account", "Dagster Cloud"),
    "dagster_": ("program", "Dagster"),
    "airbyte_": ("program", "Airbyte"),
    "astro_": ("program", "Airflow"),
    "superset_": ("program", "Superset"),
    "metabase_": ("program", "Metabase"),
    "compare_metabase_": ("program", "Metabase"),
}
_DOWNLOADING = frozenset({"download", "cloud_file", "info_from_website", "pdf_from_url"})
_ACCOUNT_TAG = "account"
MAX_SHOWN = 3
"""How many of the steps and getters that ask for one thing a sentence names."""
ANY_ACCOUNT = "some service"
"""Name of the account that a task is tagged to need, where nothing in it says which."""


def find_needs(task: ForeignTask) -> tuple[Need, ...]:
    """Return all that `task` needs and that is not here, accounts first; empty when it can be run."""
    found: dict[_Thing, dict[str, None]] = {}
    for thing, named_by in _wants(task):
        found.setdefault(thing, {})[named_by] = None
    if _ACCOUNT_TAG in task.tags and not any(kind == "account" for kind, _ in found):
        found["account", ANY_ACCOUNT] = {f"tag {_ACCOUNT_TAG}": None}
    needs = [Need(kind=kind, name=name, named_by=tuple(named)) for (kind, name), named in found.items()]
    return tuple(sorted(needs, key=lambda need: _ORDER.index(need.kind)))


def application_need(application: str) -> Need | None:
    """Return what one of upstream's applications needs; None when the guest has it."""
    if application in APPLICATIONS_HERE:
        return None
    kind, name = _APPLICATIONS.get(application, ("program", application))
    return Need(kind=kind, name=name, named_by=(f"application {application}",))


def describe_needs(needs: tuple[Need, ...]) -> str:
    """Return one sentence that names all `needs`."""
    words: dict[NeedKind, list[str]] = {}
    for need in needs:
        words.setdefault(need.kind, []).append(_named(need))
    parts = []
    if accounts := words.get("account"):
        parts.append(f"{'an account' if len(accounts) == 1 else 'accounts'} at {_listed(accounts)}")
    if programs := words.get("program"):
        parts.append(f"{_listed(programs)} in the guest")
    if downloads := words.get("download"):
        parts.append(f"to download {_listed(downloads)}")
    lacking = [f"{_LACKING[kind]} {name}" for kind in _LACKING for name in words.get(kind, ())]
    if lacking:
        parts.append(f"{_listed(lacking)}, which this version lacks")
    sentences = ["its folder is missing in this checkout"] if "folder" in words else []
    return "; ".join([*sentences, *([f"it needs {'; '.join(parts)}"] if parts else [])])


def _named(need: Need) -> str:
    asking = [word for word in need.named_by if not word.startswith("application ")][:MAX_SHOWN]
    if need.kind not in ("account", "program") or not asking:
        return need.name
    return f"{need.name} ({', '.join(asking)})"


def _wants(task: ForeignTask) -> Iterator[tuple[_Thing, str]]:
    for step in (*task.config, *task.evaluator.postconfig):
        yield from _want(step.type, KNOWN_STEPS, "step", step.parameters)
    for role, configs, known in (
        ("result", task.evaluator.result, KNOWN_RESULTS),
        ("expected", task.evaluator.expected, KNOWN_EXPECTED),
    ):
        for config in configs if isinstance(configs, list) else [configs]:
            if config and (name := config.get("type")) is not None:
                yield from _want(str(name), known, "getter", config, role)
    for metric in task.evaluator.metrics:
        yield from _want(metric, KNOWN_METRICS, "metric", {})
    # The machine's name says less than the list: upstream's dbt machine is dbt Cloud's too, which is only a web page.
    for application in task.related_apps or [task.snapshot] * (task.snapshot in _APPLICATIONS):
        if need := application_need(application):
            yield (need.kind, need.name), need.named_by[0]


def _want(
    name: str, known: frozenset[str], kind: NeedKind, parameters: Mapping[str, Any], role: str = ""
) -> Iterator[tuple[_Thing, str]]:
    label = " ".join(word for word in (role, kind, name) if word)
    for place in ("src", "path"):
        if isinstance(address := parameters.get(place), str) and address.startswith(("http://", "https://")):
            yield ("download", address), label
    if name in known:
        return
    for prefix, thing in _PREFIXES.items():
        if name.startswith(prefix):
            yield thing, label
            return
    if name in _DOWNLOADING:
        yield ("download", "files"), label
    yield (kind, f"{name} ({role})" if role == "expected" else name), label


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


_LACKING: Mapping[NeedKind, str] = {"step": "set-up step", "getter": "getter", "metric": "metric"}
_ORDER = get_args(NeedKind)
