render -f . --federated --cluster m1
