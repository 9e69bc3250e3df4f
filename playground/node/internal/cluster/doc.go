// Package cluster runs the processes of a Kubernetes cluster with one node, as the program of a sandbox: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, containerd, kubelet, and Cilium's operator and agent. CoreDNS runs as a pod.
//
// It must be the only user of its namespaces, and uses the default paths and ports of these programs.
package cluster
