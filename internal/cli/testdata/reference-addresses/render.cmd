render -f . --enforcer cilium
