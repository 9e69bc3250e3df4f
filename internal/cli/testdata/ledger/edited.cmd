ledger verify --file edited.jsonl
