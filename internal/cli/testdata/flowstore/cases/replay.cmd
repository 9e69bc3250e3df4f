replay --store STORE -f ../policies -f ../enforced
