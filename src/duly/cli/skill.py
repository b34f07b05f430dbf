"""`skill install`: the file that teaches agents to use Duly, where they look for it."""

import click

from duly.cli import out
from duly.cli.frame import Verbs, command, settings
from duly.cli.table import plain
from duly.errors import Invalid

BEHIND = 1


@command(
    name="install",
    help=(
        "Write the skill file into the folder where agents look for skills. One that is older is brought up to date;"
        " one that somebody changed is left as it is."
    ),
    epilog="duly skill install\nduly skill install --to claude --to opencode\nduly skill install --here --check",
    params=[
        click.Option(
            ["--to"],
            metavar="shared|claude|opencode",
            multiple=True,
            help="For which agents: .agents/skills, .claude/skills or .opencode/skills (may be repeated).  [shared]",
        ),
        click.Option(["--here"], is_flag=True, help="In this folder, for its project.  [in your home]"),
        click.Option(["--check"], is_flag=True, help="Write nothing; exit 1 where it is missing, older or changed."),
        click.Option(["--force"], is_flag=True, help="Write it over one that somebody changed."),
    ],
)
def install(to: tuple[str, ...], here: bool, check: bool, force: bool) -> int:
    """Install the skill."""
    from duly.app import skill
    from duly.core.reading import nearest, shown

    for place in to:
        if place not in skill.PLACES:
            near = nearest(place, tuple(skill.PLACES)) or "shared"
            raise Invalid(f"{shown(place)} is not one of {', '.join(skill.PLACES)}", field="--to", hint=near)
    if check and force:
        raise Invalid("--check writes nothing", field="--force")
    found = skill.folders(tuple(dict.fromkeys(to)) or ("shared",), here=here)
    done = [skill.look(one) if check else skill.install(one, force=force) for one in found]
    if settings().as_json:
        items = [{"path": str(one.path), "state": one.state, "written": one.written} for one in done]
        out.document({"items": items, "next": None})
    else:
        for one in done:
            out.line(f"{'wrote' if one.written else one.state} {plain(str(one.path))}")
    return BEHIND if check and any(one.state != "current" for one in done) else 0


skill = Verbs("skill", install, help="The skill file that teaches agents to use Duly.")
