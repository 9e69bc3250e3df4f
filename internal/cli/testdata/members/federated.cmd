render -f . --federated
