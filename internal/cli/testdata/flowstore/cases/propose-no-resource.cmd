propose --store STORE -f ../policies
