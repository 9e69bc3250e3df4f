ledger verify --file edited.jsonl -o json
