"""`python -m duly` and the command `duly`."""

import sys


def main() -> None:
    """Run the command line and leave the process with its exit code."""
    from duly.cli.frame import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
