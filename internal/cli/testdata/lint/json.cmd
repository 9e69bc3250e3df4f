lint -f . -o json
