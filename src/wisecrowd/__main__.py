"""``python -m wisecrowd``: the command line."""

from wisecrowd.cli import main

main()
