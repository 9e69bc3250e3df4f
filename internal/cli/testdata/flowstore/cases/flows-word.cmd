flows --store STORE --decision refused
