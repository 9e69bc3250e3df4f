render -f . --cluster m3
