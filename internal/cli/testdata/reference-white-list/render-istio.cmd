render -f . --enforcer istio --capabilities istio=istio-members.txt
