"""Guards what is said of tasks that cannot run here: an account or program that is found missing in mid-trial only."""

from pathlib import Path
from typing import Any

import pytest
from checkouts import TASK, judged, step, write_checkout

from deskfork.core.errors import ConfigError, TaskError
from deskfork.tasks.load import open_source, select
from deskfork.tasks.summary import Need

OUTPUT = {"type": "vm_script_output", "src": "evaluation_examples/gold.csv", "dest": "/home/user/eval.sh"}
RULE = {"type": "rule", "rules": {"include": ["succeed"], "exclude": ["failed"]}}
BY_SCRIPT = judged("check_include_exclude", OUTPUT, RULE)
URL = "http://localhost:8000"

CASES: list[tuple[str, dict[str, Any], str]] = [
    (
        "dbt, whose steps and checks are all known",
        {"snapshot": "dbt", "related_apps": ["dbt", "duckdb", "vscode", "terminal"], **BY_SCRIPT},
        "it needs dbt, DuckDB and VS Code in the guest",
    ),
    (
        "dbt Cloud",
        {
            "snapshot": "dbt",
            "related_apps": ["dbt-cloud", "chromium"],
            "tags": ["gui", "account"],
            "config": [step("dbt_cloud_init", actions=[]), step("dbt_cloud_webui_login", skip_step=2)],
            **judged("check_include_exclude", {"type": "dbt_job_info", "name": "n", "fields": []}, RULE),
        },
        "it needs an account at dbt Cloud (step dbt_cloud_init, step dbt_cloud_webui_login, "
        "result getter dbt_job_info)",
    ),
    (
        "excel",
        {
            "snapshot": "excel",
            "source": "Somewhere@73",
            "related_apps": ["excel"],
            "config": [step("open", path="/home/user/x.xlsx")],
            **judged(
                "compare_table",
                {"type": "vm_file", "path": "/home/user/x.xlsx", "dest": "x.xlsx"},
                {"type": "local_file", "path": "evaluation_examples/gold.csv"},
                postconfig=[step("activate_window", window_name="x", strict=True), step("sleep", seconds=0.5)],
                options={"rules": [{"type": "sheet_data"}]},
            ),
        },
        "it needs LibreOffice in the guest; set-up step open and metric compare_table, which this version lacks",
    ),
    (
        "bigquery",
        {
            "snapshot": "bigquery",
            "related_apps": ["bigquery", "chromium"],
            "config": [step("bigquery_login", settings_file="s.json"), step("bigquery_init", actions=[])],
        },
        "it needs an account at Google Cloud (step bigquery_login, step bigquery_init)",
    ),
    (
        "snowflake",
        {
            "snapshot": "snowflake",
            "related_apps": ["chromium", "snowflake"],
            "config": [step("snowflake_login", url=URL), step("snowflake_write_sqls_in_new_worksheet", sqls=[])],
            **judged("exact_match", {"type": "snowflake_worksheet_sql"}, {"type": "rule", "rules": {"expected": "x"}}),
        },
        "it needs an account at Snowflake (step snowflake_login, step snowflake_write_sqls_in_new_worksheet, "
        "result getter snowflake_worksheet_sql); metric exact_match, which this version lacks",
    ),
    (
        "dagster",
        {
            "snapshot": "dagster",
            "related_apps": ["chromium", "dagster", "vscode"],
            "config": [step("dagster_webui_init", url=URL)],
            **judged(["check_include_exclude"], OUTPUT, [RULE]),
        },
        "it needs Dagster (step dagster_webui_init) and VS Code in the guest",
    ),
    (
        "airflow",
        {
            "snapshot": "astro",
            "related_apps": ["airflow", "docker", "chromium"],
            "action_number": "7",
            "config": [step("astro_webui_init", url=URL, actions=[])],
            **judged("check_include_exclude", {"type": "html_check", "src": "x.sh", "dest": "/x"}, RULE),
        },
        "it needs Airflow (step astro_webui_init) and Docker in the guest; getter html_check, which this version lacks",
    ),
    (
        "airbyte with an account",
        {
            "snapshot": "airbyte",
            "related_apps": ["airbyte", "docker", "postgresql", "chromium", "snowflake"],
            "tags": ["cli+gui", "account"],
            "config": [step("snowflake_init", actions=[]), step("airbyte_webui_init", url=URL)],
            **judged(
                ["check_include_exclude", "compare_csv"], [OUTPUT, {"type": "snowflake_table_to_csv"}], [RULE, None]
            ),
        },
        "it needs an account at Snowflake (step snowflake_init, result getter snowflake_table_to_csv); "
        "Airbyte (step airbyte_webui_init), Docker and PostgreSQL in the guest",
    ),
    (
        "superset",
        {
            "snapshot": "superset",
            "related_apps": ["chromium", "superset"],
            "config": [step("superset_webui_init", url=URL)],
            **BY_SCRIPT,
        },
        "it needs Superset (step superset_webui_init) in the guest",
    ),
    (
        "metabase",
        {
            "snapshot": "metabase",
            "related_apps": ["chromium", "metabase"],
            "config": [step("metabase_webui_init", url=URL)],
            **judged(
                "compare_metabase_images",
                {"type": "vm_file", "path": "/x.png"},
                {"type": "local_file", "path": "evaluation_examples/gold.csv"},
            ),
        },
        "it needs Metabase (step metabase_webui_init, metric compare_metabase_images) in the guest",
    ),
    (
        "servicenow",
        {
            "snapshot": "servicenow",
            "related_apps": ["chromium", "servicenow"],
            "tags": ["account"],
            "config": [step("workarena_task_init", task_name="T", task_kwargs={})],
            **judged("check_include_exclude", {"type": "workarena_task_result"}, RULE, options={}),
        },
        "it needs an account at ServiceNow (step workarena_task_init, result getter workarena_task_result)",
    ),
    ("only the machine's name says it", {"snapshot": "dagster", "related_apps": []}, "it needs Dagster in the guest"),
    ("only a tag says it", {"tags": ["gui", "account"]}, "it needs an account at some service (tag account)"),
    (
        "a download",
        {"config": [step("script_and_execute", src="https://example.org/x.sh", dest="/home/user/x.sh")]},
        "it needs to download https://example.org/x.sh",
    ),
    (
        "an expected getter",
        judged("compare_csv", {"type": "vm_file", "path": "/x"}, {"type": "vm_file", "path": "/y"}),
        "it needs getter vm_file (expected), which this version lacks",
    ),
    ("an unheard-of application", {"related_apps": ["jupyter", "hologram"]}, "it needs hologram in the guest"),
]


@pytest.mark.parametrize(("fields", "said"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_missing_is_named_before_any_machine_starts(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    source = open_source(write_checkout(tmp_path, {"some/t1": fields, "jupyter/t2": {}}))
    with pytest.raises(TaskError) as caught:
        source.load("t1")
    assert str(caught.value) == f"task t1 cannot be run: {said}"
    first, second = source.list()
    assert (first.runnable, first.error, second.runnable) == (False, str(caught.value), True)
    assert first.needs
    assert first.instruction == TASK["instruction"]


INDEX = {
    "all": {"jupyter": ["t1", "n1"], "dbt": ["d1", "d2"], "servicenow": ["s1"]},
    "account": {"dbt": ["d2"], "servicenow": ["s1"], "jupyter": []},
    "verbose": {"dbt": ["d1"]},
    "abstract": {"dbt": ["d2"]},
}


def test_tasks_without_a_folder_are_listed_and_never_run(tmp_path: Path) -> None:
    source = open_source(write_checkout(tmp_path, {"jupyter/t1": {}}, INDEX))
    assert source.ids() == ["t1"]
    listed = {summary.id: summary for summary in source.list()}
    assert sorted(listed) == ["d1", "d2", "n1", "s1", "t1"]
    assert [task for task, summary in listed.items() if summary.runnable] == ["t1"]
    said = "its folder is missing in this checkout"
    assert listed["n1"].error == f"task n1 cannot be run: {said}"
    assert listed["d1"].error == f"task d1 cannot be run: {said}; it needs dbt in the guest"
    assert listed["d2"].error == f"task d2 cannot be run: {said}; it needs an account at dbt Cloud"
    assert listed["s1"].error == f"task s1 cannot be run: {said}; it needs an account at ServiceNow"
    assert (listed["d1"].related_apps, listed["d1"].wording) == (("dbt",), "verbose")
    assert listed["n1"].needs == (Need(kind="folder", name="examples/jupyter"),)
    assert source.complaints() == ()
    with pytest.raises(TaskError, match="task d1 cannot be run: its folder is missing"):
        source.load("d1")
    with pytest.raises(TaskError, match="task s1 cannot be run: its folder is missing"):
        select(source, "t1,s1")
    with pytest.raises(TaskError, match="there is no task 'x9'"):
        select(source, "t1,x9")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[", "test_all.json is broken JSON"),
        ("[" * 100_000, "test_all.json is nested too deep"),
        ("[]", "test_all.json has a wrong the top level"),
        ('{"jupyter": "t1"}', "test_all.json has a wrong jupyter"),
        ("x" * 2_000_000, "test_all.json is larger"),
    ],
)
def test_a_broken_index_is_told_and_hides_no_task(tmp_path: Path, content: str, said: str) -> None:
    source = open_source(write_checkout(tmp_path, {"jupyter/t1": {}}, {**INDEX, "all": content}))
    assert [summary.id for summary in source.list()] == ["t1"]
    [complaint] = source.complaints()
    assert said in complaint
    assert source.load("t1").id == "t1"


def test_of_a_pair_only_the_wording_that_was_asked_for_is_selected(tmp_path: Path) -> None:
    tasks: dict[str, dict[str, Any]] = {
        "jupyter/a1": {"counterpart": "v1", "tags": ["abstract"]},
        "jupyter/v1": {"counterpart": "a1", "tags": ["verbose"]},
        "jupyter/z1": {"tags": []},
        "jupyter/broken": {"evaluator": 5},
    }
    source = open_source(write_checkout(tmp_path, tasks))
    assert select(source, "all") == ["a1", "broken", "v1", "z1"]
    assert select(source, "all", "verbose") == ["broken", "v1"]
    assert select(source, "a1,v1", "abstract") == ["a1"]
    with pytest.raises(ConfigError, match=r"none of the 1 tasks .* is worded verbose; their counterparts are v1"):
        select(source, "a1", "verbose")
