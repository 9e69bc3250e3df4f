replay --store STORE -f ../policies -f ../enforced --since 2d -o json
