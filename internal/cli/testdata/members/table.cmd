render -f . -o table
