ledger verify --file cut.jsonl --anchor heads.jsonl
