"""The recipes for schedulers do what they say, as far as a machine without one can tell."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from filelock import FileLock
from job_fixtures import shots, write_shard
from platformdirs import user_cache_path
from slow_job import COUNT

from pipeline.cli.app import main
from pipeline.cli.recipes import Recipe, recipe_text
from pipeline.dataset import open_root
from pipeline.verify import verify_dataset

ROOT = Path(__file__).resolve().parents[2]
PART_JOB = Path(__file__).with_name("part_job.py")
KUBERNETES = "1.31"
AIRFLOW = "3.3.2"
DEADLINE = 240


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with each recipe, a job, and a `pantalla` that says what it is asked."""
    for recipe in Recipe:
        (tmp_path / recipe).write_text(recipe_text(recipe))
    (tmp_path / "job.toml").write_text("")
    said = shlex.quote(str(tmp_path / "said"))
    script(
        tmp_path / "pantalla",
        f'#!/bin/sh\necho "$@" >> {said}\n'
        'trap "exit 143" TERM\n[ -n "${SLEEP:-}" ] && { sleep "$SLEEP" & wait $!; }\n'
        "exit ${CODE:-0}\n",
    )
    return tmp_path


def environment(place: Path, **more: str) -> dict[str, str]:
    path = f"{place}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PANTALLA_JOB": str(place / "job.toml"), **more}


def said(place: Path) -> list[str]:
    found = place / "said"
    return found.read_text().splitlines() if found.exists() else []


def wait_for(place: Path, count: int) -> None:
    until = time.monotonic() + DEADLINE
    while len(said(place)) < count:
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize(("code", "mail"), [(0, ""), (1, "report"), (4, "goes on"), (2, "person")])
def test_cron_mails_what_a_person_must_know(place: Path, code: int, mail: str) -> None:
    done = subprocess.run(
        ["sh", place / Recipe.CRON],
        env=environment(place, CODE=str(code)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert said(place) == [f"run {place}/job.toml"]
    assert mail in done.stdout
    assert bool(done.stdout) is bool(mail)


def test_cron_runs_one_at_a_time(place: Path) -> None:
    command = ["sh", place / Recipe.CRON]
    first = subprocess.Popen(command, env=environment(place, SLEEP="60"))
    wait_for(place, 1)
    assert subprocess.run(command, env=environment(place), check=False).returncode == 0
    assert len(said(place)) == 1
    (child,) = subprocess.run(
        ["pgrep", "-P", str(first.pid)], capture_output=True, text=True, check=True
    ).stdout.split()
    os.kill(int(child), signal.SIGTERM)
    assert first.wait(DEADLINE) == 0


def slurm(place: Path, **more: str) -> subprocess.Popen[bytes]:
    command = ["bash", place / Recipe.SLURM, place / "job.toml"]
    return subprocess.Popen(command, env=environment(place, **more))


def test_slurm_gives_each_task_its_part(place: Path) -> None:
    for task in ("1", "3"):
        array = {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": "3"}
        assert slurm(place, **array).wait(DEADLINE) == 0
    assert slurm(place).wait(DEADLINE) == 0
    job = f"run {place}/job.toml"
    assert said(place) == [f"{job} --partition 1/3", f"{job} --partition 3/3", job]


def test_slurm_passes_the_signal_on_and_goes_back_into_the_queue(place: Path) -> None:
    script(place / "scontrol", f'#!/bin/sh\necho "$@" >> {place}/queue\n')
    task = slurm(place, SLEEP="60", SLURM_JOB_ID="77")
    wait_for(place, 1)
    task.send_signal(signal.SIGTERM)
    assert task.wait(DEADLINE) == 0
    assert (place / "queue").read_text() == "requeue 77\n"
    assert slurm(place, CODE="2", SLURM_JOB_ID="77").wait(DEADLINE) == 2
    assert slurm(place, CODE="4", SLURM_JOB_ID="77", SLURM_RESTART_COUNT="20").wait(DEADLINE) == 4


def test_an_array_makes_a_whole_dataset(place: Path) -> None:
    write_shard(place / "a.tar", shots(COUNT))
    line = shlex.join([sys.executable, str(PART_JOB)])
    script(place / "pantalla", f'#!/bin/sh\nexec {line} "$@"\n')
    more = {"PYTHONPATH": str(ROOT), "SLURM_ARRAY_TASK_COUNT": "2"}
    tasks = [slurm(place, SLURM_ARRAY_TASK_ID=task, **more) for task in ("1", "2")]
    assert [task.wait(DEADLINE) for task in tasks] == [0, 0]
    assert slurm(place, **more).wait(DEADLINE) == 0
    dataset = open_root(str(place / "dataset"))
    assert len(dataset.table("annotations")) == 3 * COUNT
    assert verify_dataset(dataset).whole


def test_the_kubernetes_job_fits_the_api_and_its_command_its_parts(place: Path) -> None:
    job = yaml.safe_load(recipe_text(Recipe.KUBERNETES))
    kubernetes_validate.validate(job, KUBERNETES, strict=True)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    count = job["spec"]["completions"]
    for index in (0, count - 1):
        command = [*container["command"], *container["args"]]
        more = environment(place, JOB_COMPLETION_INDEX=str(index))
        subprocess.run(command, env=more, check=True)
    line = "run /etc/pantalla/job.toml --partition"
    assert said(place) == [f"{line} 1/{count}", f"{line} {count}/{count}"]


def test_the_airflow_dag_is_python() -> None:
    compile(recipe_text(Recipe.AIRFLOW), "airflow.py", "exec")


@pytest.fixture(scope="module")
def airflow_python() -> Path:
    """Python of an environment with Airflow, made in the user's cache the first time."""
    home = user_cache_path("pantalla") / f"airflow-{AIRFLOW}"
    python, done = home / "bin" / "python", home / "pantalla-complete"
    home.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{home}.lock"):
        if not done.exists():
            uv = [sys.executable, "-m", "uv"]
            make = [*uv, "venv", "-q", "--clear", "--python", sys.executable, home]
            subprocess.run(make, check=True)
            fill = [*uv, "pip", "install", "-q", "--python", python, f"apache-airflow=={AIRFLOW}"]
            subprocess.run(fill, check=True)
            done.touch()
    return python


def test_airflow_takes_the_dag_and_runs_its_commands(place: Path, airflow_python: Path) -> None:
    dags = place / "dags"
    dags.mkdir()
    (dags / "pantalla_job.py").write_text(recipe_text(Recipe.AIRFLOW))
    more = environment(place, AIRFLOW_HOME=str(place / "airflow"), PANTALLA_PARTS="2")
    more["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    script_path = script(place / "try_airflow.py", _TRY_AIRFLOW)
    done = subprocess.run(
        [airflow_python, script_path, dags / "pantalla_job.py"],
        env=more,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    job = f"{place}/job.toml"
    parts = [f"run {job} --partition {part}/2" for part in (1, 2)]
    assert said(place)[:1] == [f"plan {job}"]
    assert sorted(said(place)[1:]) == sorted([*parts, f"run {job}", f"run {job}"])


_TRY_AIRFLOW = """
import importlib.util, os, sys
spec = importlib.util.spec_from_file_location("pantalla_job", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
dag = module.plan.dag
assert dag.task_ids[0] == "plan", dag.task_ids
assert {t.task_id for t in module.whole.get_direct_relatives(upstream=True)} == {
    p.task_id for p in module.parts
}
dag.check_cycle() if hasattr(dag, "check_cycle") else None
for task in dag.tasks:
    task.execute({"ti": None})
os.environ["CODE"] = "2"
from airflow.exceptions import AirflowFailException
try:
    module.whole.execute({"ti": None})
except AirflowFailException:
    pass
else:
    raise SystemExit("wrong settings were not a failure for good")
"""


def test_the_command_lists_and_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["recipes"])
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(Recipe)
    with pytest.raises(SystemExit):
        main(["recipes", "slurm"])
    assert capsys.readouterr().out == recipe_text(Recipe.SLURM)
    for recipe in Recipe:
        assert "Tried:" in recipe_text(recipe)
        assert "Not tried:" in recipe_text(recipe)
