"""Tasks that a loop file defines, over HTTP: switched in their file, and changed nowhere else."""

from pathlib import Path

from web_scene import Web, web_over
from work_scene import of

from duly.app import loops
from duly.definitions import read_definition
from duly.operations import tasks

FILE = "---\nname: news\nschedule: daily 09:00\n# kept as it is\n---\nWhat is new?\n"


def filed(web: Web, project: Path) -> tuple[Path, str]:
    """A task of a file that lies in the folder of its project."""
    path = project / ".agents" / "loops" / "news.md"
    path.parent.mkdir(parents=True)
    path.write_text(FILE)
    assert web.ask("PUT", "/projects/paper", json={"dir": str(project)}).status_code == 200
    with web.store.read() as session:
        read = read_definition(of("news", project="paper"), now=session.now, default_zone="UTC")
    source = {"kind": "file", "path": str(path), "line": 1}
    return path, tasks.add(web.store, read.definition, by="ann", source=source).id


def test_a_task_of_a_file_is_switched_in_the_file_with_every_other_byte_as_it_was(tmp_path: Path) -> None:
    with web_over(tmp_path, switch=loops.switch) as web:
        path, id_ = filed(web, tmp_path / "paper")
        off = web.ask("POST", f"/tasks/{id_}/disable")
        assert (off.status_code, off.json()["enabled"]) == (200, False), off.text
        assert path.read_text() == FILE.replace("# kept as it is\n", "# kept as it is\nenabled: false\n")
        on = web.ask("POST", f"/tasks/{id_}/enable")
        assert (on.json()["enabled"], "enabled: true" in path.read_text()) == (True, True)


def test_a_task_of_a_file_is_edited_in_the_file_alone(tmp_path: Path) -> None:
    with web_over(tmp_path) as web:
        path, id_ = filed(web, tmp_path / "paper")
        before = web.dump()
        asked = {"If-Match": "*"}
        for method, rest, body in (
            ("PATCH", "", {"description": "x"}),
            ("PUT", "", of("news", project="paper")),
            ("DELETE", "", None),
            ("POST", "/disable", {}),
        ):
            refused = web.ask(method, f"/tasks/{id_}{rest}", json=body, headers=asked)
            assert (refused.status_code, refused.json()["reason"]) == (409, "owned_by_file"), (method, refused.text)
            assert str(path) in refused.text
        assert (web.dump(), path.read_text()) == (before, FILE)
