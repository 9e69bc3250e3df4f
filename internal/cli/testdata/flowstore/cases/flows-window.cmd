flows --store STORE --since 2026-12-01T00:00:00Z
