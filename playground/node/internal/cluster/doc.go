// Package cluster runs the processes of a Kubernetes cluster with one node, as the program of a sandbox: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, containerd, kubelet, and Cilium's operator and agent. CoreDNS runs as a pod.
//
// It expects to be alone in its namespaces, and uses the paths and ports that such a node has everywhere.
package cluster
