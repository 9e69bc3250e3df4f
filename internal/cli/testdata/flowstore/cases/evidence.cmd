evidence --store STORE -f ../policies
