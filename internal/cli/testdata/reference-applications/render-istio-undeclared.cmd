render -f . --enforcer istio
