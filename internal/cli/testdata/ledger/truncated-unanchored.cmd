ledger verify --file cut.jsonl
