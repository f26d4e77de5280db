"""Load a release of wisecrowd with ``datasets`` and write its content as JSON."""

import json
import sys
from pathlib import Path

from datasets import load_dataset

if __name__ == "__main__":
    kind, path = sys.argv[1:]
    table = load_dataset(kind, data_files=path, split="train", cache_dir="cache")
    content = {"features": list(table.features), "rows": [dict(row) for row in table]}
    Path(f"{path}.loaded.json").write_text(json.dumps(content))
