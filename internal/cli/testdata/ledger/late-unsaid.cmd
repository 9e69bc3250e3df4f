ledger verify --file late.jsonl
