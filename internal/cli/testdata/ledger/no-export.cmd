ledger verify --file heads.jsonl
