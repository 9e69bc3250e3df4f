replay --store STORE -f ../policies -f ../policies --since 1h
