render -f .
