ledger verify --file missing.jsonl
