lint -f .
