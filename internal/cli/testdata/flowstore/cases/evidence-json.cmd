evidence --store STORE -f ../policies -o json --window 1d
