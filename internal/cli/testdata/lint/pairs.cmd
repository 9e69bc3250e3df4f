lint -f classes pairs.txt
