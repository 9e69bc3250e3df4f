ledger verify --file ledger.jsonl --anchor ledger.jsonl
