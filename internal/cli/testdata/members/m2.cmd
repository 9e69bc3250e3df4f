render -f . --cluster m2 -o json
