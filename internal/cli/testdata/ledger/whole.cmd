ledger verify --file ledger.jsonl
