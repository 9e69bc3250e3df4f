unused --store STORE -f ../policies --quiet 10d
