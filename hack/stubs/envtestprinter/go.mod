module sigs.k8s.io/controller-runtime/pkg/envtest/printer

go 1.26
