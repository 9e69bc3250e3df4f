ledger verify
