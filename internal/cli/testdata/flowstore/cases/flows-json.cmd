flows --store STORE --since 30d --unattributed -o json
