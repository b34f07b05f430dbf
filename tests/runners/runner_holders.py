"""Holders in processes of their own, and what a second one does with the work of the first."""

import json
import subprocess
import sys

from runner_scene import (
    assign,
)

from duly.ports import Assignment, Outcome
from duly.runners import keeping
from duly.runners.command import Command
from duly.runners.nurseries import Nursery

LONG = "echo $$ > pids; sleep 600"

SECOND = "hld_second"

HOLDER_SCRIPT = """
import json, sys
from datetime import timedelta
from pathlib import Path
from duly.ports import Assignment
from duly.runners.command import Command
from duly.runners.nurseries import Nursery
told = json.loads(sys.argv[1])
Command(Nursery(), grace=timedelta(seconds=1)).perform(Assignment(**told | {
    "due_at": None, "folder": Path(told["folder"]), "timeout": timedelta(seconds=60)}), None)
"""


def a_holder(assignment: Assignment) -> subprocess.Popen[bytes]:
    """Start a process that holds and performs the assignment."""
    names = ("run", "attempt", "fence", "holder", "task", "task_name", "project", "occurrence", "opened_by", "input")
    told = {name: getattr(assignment, name) for name in names}
    told |= {"action": dict(assignment.action), "folder": str(assignment.folder)}
    return subprocess.Popen([sys.executable, "-c", HOLDER_SCRIPT, json.dumps(told)], stdin=subprocess.DEVNULL)


def attached(nursery: Nursery, assignment: Assignment) -> Outcome:
    """Look after what another holder has started, to its end."""
    outcome = Command(nursery).perform(assignment, {})
    assert isinstance(outcome, Outcome)
    return outcome


def stopped(assignment: Assignment) -> keeping.KeeperStopped | None:
    """Give the keeper if it is seen to be frozen."""
    seen = keeping.look(assignment.folder)
    return seen if isinstance(seen, keeping.KeeperStopped) else None


def by_another(assignment: Assignment) -> Assignment:
    """Give the same attempt in the hands of the second holder."""
    return assign(
        assignment.folder.parent.parent, assignment.action, run=assignment.run, fence=assignment.fence, holder=SECOND
    )
