unused --store STORE -f ../policies --quiet 60d
