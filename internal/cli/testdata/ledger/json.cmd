ledger verify --file ledger.jsonl --anchor heads.jsonl -o json
