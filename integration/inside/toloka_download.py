"""Download assignments with toloka-kit and save them as its users do."""

import sys

from toloka.client import TolokaClient

if __name__ == "__main__":
    address, pool = sys.argv[1:]
    client = TolokaClient("a-key-for-this-run", url=address)
    fields = ["ASSIGNMENT:assignment_id", "ASSIGNMENT:worker_id", "ASSIGNMENT:status", "ASSIGNMENT:started"]
    table = client.get_assignments_df(pool, status=["APPROVED", "REJECTED"], field=fields)
    table.to_csv("saved.tsv", sep="\t", index=False)
    table.to_csv("saved-with-index.tsv", sep="\t")
