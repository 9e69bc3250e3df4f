lint -f classes --fail-on error
