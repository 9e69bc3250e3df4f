lint -f classes pairs.txt -o json
