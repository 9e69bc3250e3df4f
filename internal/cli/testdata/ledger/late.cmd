ledger verify --file late.jsonl --from 4 --anchor heads.jsonl
