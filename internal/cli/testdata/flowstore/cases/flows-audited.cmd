flows --store STORE --since 30d --decision audited --limit 2
