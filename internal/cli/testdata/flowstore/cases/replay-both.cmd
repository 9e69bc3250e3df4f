replay --store STORE --ticket T-1 -f ../policies
