"""Print the folder of the application of doccano."""

from importlib.util import find_spec

print(next(iter(find_spec("backend").submodule_search_locations)))
