flows --store STORE --since 30d
