ledger verify --file ledger.jsonl --server https://acp.example.com
