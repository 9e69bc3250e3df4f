decide -f . --queries queries.jsonl
