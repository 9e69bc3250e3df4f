lint -f . --strict
