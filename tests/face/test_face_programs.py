"""Programs: by which names their functions are found again, and who else may serve what they define."""

import pytest
from face_scene import Home, until

JOBS = """
from duly import Duly, this_run
duly = Duly("duly.db", project="site")

@duly.task("daily 08:00", zone="Europe/Berlin")
def report(who="you"):
    print("hello", who, "from", __name__, this_run().task)

if __name__ == "__main__":
    with duly:
        run = duly.run(report, "me")
        duly.serve(until_idle=True)
        print(duly.get(report).json["action"]["function"])
        print(duly.log(run).decode(), end="")
"""


@pytest.mark.parametrize(
    ("words", "file", "function"),
    [
        (("jobs.py",), "jobs.py", "jobs:report"),
        (("inner/jobs.py",), "inner/jobs.py", "jobs:report"),
        (("-m", "inner.jobs"), "inner/jobs.py", "inner.jobs:report"),
        (("-m", "inner"), "inner/__main__.py", "inner.__main__:report"),
        (("-m", "jobs"), "jobs.py", "jobs:report"),
    ],
)
def test_a_function_of_the_program_itself_is_found_again_however_that_was_started(
    home: Home, words: tuple[str, ...], file: str, function: str
) -> None:
    (home.folder / "inner").mkdir()
    out = home.ran(JOBS, *words, name=file)
    assert out.splitlines() == [function, f"hello me from {function.partition(':')[0]} report"]


@pytest.mark.parametrize(
    ("words", "name", "said"),
    [
        (("my-jobs.py",), "my-jobs.py", "my-jobs.py has a name by which no module can be imported"),
        (("-c", "exec(open('jobs.py').read())"), "jobs.py", "is defined where no file is"),
    ],
)
def test_a_program_whose_functions_nobody_can_import_is_told_so(
    home: Home, words: tuple[str, ...], name: str, said: str
) -> None:
    with home.program(JOBS, *words, name=name) as program:
        _, errors = program.communicate(timeout=60)
    assert program.returncode == 1
    assert said in errors.splitlines()[-1]


def test_the_command_line_serves_what_a_program_defined_where_it_finds_the_module(home: Home) -> None:
    home.ran(JOBS, "-c", "import jobs; print(jobs.duly.tasks())", name="jobs.py")
    duly = home.duly()
    run = duly.run("site/report", "cli")
    home.cli("serve", "--until-idle")  # by `python -m`, which looks for modules where it is started
    ended = duly.wait(run, 30)
    assert (ended.outcome, duly.log(run)) == ("succeeded", b"hello cli from jobs report\n")
    shown = home.cli("show", "report")
    assert "jobs:report()" in shown


def test_in_the_child_that_calls_it_a_module_defines_nothing_though_it_uses_the_store(home: Home) -> None:
    home.write("jobs.py", JOBS + "\n\ndef asks():\n    print([one.name for one in duly.tasks()])\n")
    duly = home.duly()
    duly.define("by-name", call="jobs:asks")
    duly.start()
    run = duly.wait(duly.run("by-name"), 60)
    assert (run.outcome, duly.log(run)) == ("succeeded", b"['by-name']\n")
    assert [task.name for task in duly.tasks()] == ["by-name"]


def test_what_was_once_a_program_s_is_changed_by_the_next_version_of_it(home: Home) -> None:
    home.ran(JOBS, "-c", "import jobs; jobs.duly.tasks()", name="jobs.py")
    changed = JOBS.replace("daily 08:00", "daily 09:30")
    home.ran(changed, "-c", "import jobs; jobs.duly.tasks()", name="jobs.py")
    task = home.duly().get("report")
    assert (task.version, task.json["triggers"][0]["times"]) == (2, ["09:30"])
    until(lambda: home.cli("verify").strip().endswith("hold on this store"))
