"""The ``wisecrowd`` program, also run by ``python -m wisecrowd``."""

import sys


def main() -> None:
    """Run the command line, with one message for Ctrl-C while its modules are imported."""
    try:
        from wisecrowd.cli import main as run
    except KeyboardInterrupt:
        print("Interrupted: no file is left half-written.", file=sys.stderr)
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
