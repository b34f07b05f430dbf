"""The shapes of answers as a table: each field with its kind, and an example of each shape.

A kind is `text`, `instant`, `whole`, `number`, `truth`, `object`, `any` or another shape; with `?` also null, in `[]` a
list. Shapes may have more fields than these, which are those that scripts rely on.
"""

from collections.abc import Mapping

from duly.web import records

AT = "2026-12-01T08:00:00Z"
TASK_ID = "tsk_01kbcd3f4g5h6j7k8m9n0p1q2r"
RUN_ID = "run_01kbcd5v6w7x8y9z0a1b2c3d4e"
HOLDER_ID = "hld_01kbccw0x1y2z3a4b5c6d7e8f9"

_task: Mapping[str, str] = {
    "id": "text",
    "project": "text",
    "name": "text",
    "description": "text?",
    "labels": "object",
    "enabled": "truth",
    "done": "truth",
    "broken": "object?",
    "paused": "[object]",
    "triggers": "[object]",
    "zone": "text",
    "action": "object",
    "rules": "object",
    "source": "object",
    "version": "whole",
    "created_at": "instant",
    "created_by": "text",
    "updated_at": "instant",
    "next_due_at": "instant?",
    "next_start_at": "instant?",
    "last_run": "object?",
    "counts": "object",
}
_source: Mapping[str, str] = {
    "name": "text",
    "proof": "text?",
    "secret": "text?",
    "preset": "text?",
    "header": "text?",
    "within": "text?",
    "queue": "whole?",
    "set_at": "instant?",
    "set_by": "text?",
    "tasks": "whole",
    "last_at": "instant?",
    "last_key": "text?",
    "received": "whole",
}
SHAPES: Mapping[str, Mapping[str, str]] = {
    **records.SHAPES,
    "source": _source,
    "problem": {
        "title": "text",
        "status": "whole",
        "detail": "text",
        "reason": "text",
        "details": "object",
        "errors": "[object]",
    },
    "task": _task,
    "edited": {
        **_task,
        "changes": "[object]",
        "new_era": "truth",
        "ended": "whole",
        "warnings": "[text]",
        "dry_run": "truth",
    },
    "status": {
        "store": "text",
        "holders_alive": "whole",
        "tasks": "object",
        "runs": "object",
        "open_missed": "whole",
        "open_questions": "whole",
        "failing": "whole",
        "budgets": "[object]",
        "next_due_at": "instant?",
        "version": "text",
    },
    "token": {
        "id": "text",
        "name": "text",
        "kind": "text",
        "rights": "[text]",
        "projects": "any",
        "created_at": "instant",
        "created_by": "text",
        "expires_at": "instant?",
        "revoked_at": "instant?",
        "revoked_by": "text?",
    },
    "token_made": {"id": "text", "name": "text", "rights": "[text]", "secret": "text"},
}

_TOKEN: Mapping[str, object] = {
    "id": "tok_01kbcd7h8j9k0m1n2p3q4r5s6t",
    "name": "ci",
    "kind": "token",
    "rights": ["read", "run"],
    "projects": ["shop"],
    "created_at": AT,
    "created_by": "ann",
    "expires_at": None,
    "revoked_at": None,
    "revoked_by": None,
}
_TASK: Mapping[str, object] = {
    "id": TASK_ID,
    "project": "default",
    "name": "report",
    "description": None,
    "labels": {},
    "enabled": True,
    "done": False,
    "broken": None,
    "paused": [],
    "triggers": [{"kind": "daily", "times": ["08:00"]}],
    "zone": "Europe/Berlin",
    "action": {"kind": "command", "argv": ["./report"], "cwd": "/srv/shop", "env": {}},
    "rules": {"on_missed": "run", "overlap": "skip", "retries": 0},
    "source": {"kind": "cli"},
    "version": 1,
    "created_at": AT,
    "created_by": "ann",
    "updated_at": AT,
    "next_due_at": "2026-12-02T07:00:00Z",
    "next_start_at": "2026-12-02T07:00:00Z",
    "last_run": None,
    "counts": {"runs": 0, "failures_in_a_row": 0, "open_missed": 0},
}
EXAMPLES: Mapping[str, Mapping[str, object]] = {
    **records.EXAMPLES,
    "source": {
        "name": "repo",
        "proof": "hmac",
        "secret": "REPO_SECRET",
        "preset": "github",
        "header": None,
        "within": None,
        "queue": 1000,
        "set_at": AT,
        "set_by": "ann",
        "tasks": 2,
        "last_at": AT,
        "last_key": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "received": 41,
    },
    "task": _TASK,
    "edited": {
        **_TASK,
        "changes": [{"field": "rules.retries", "old": 2, "new": None}],
        "new_era": False,
        "ended": 0,
        "warnings": [],
        "dry_run": False,
    },
    "status": {
        "store": "/srv/duly/duly.db",
        "holders_alive": 1,
        "tasks": {"total": 12, "enabled": 11, "paused": 1, "broken": 0},
        "runs": {"waiting": 0, "running": 2, "parked": 0},
        "open_missed": 0,
        "open_questions": 1,
        "failing": 0,
        "budgets": [],
        "next_due_at": AT,
        "version": "0.2.0",
    },
    "token": _TOKEN,
    "token_made": {**_TOKEN, "secret": "duly_tok_01kbcd7h8j9k0m1n2p3q4r5s6t_…"},
}
