// Package controllers stands in for the package of the same name of sigs.k8s.io/mcs-api. Cilium uses one constant of it, and the
// module is not in every Go module proxy.
package controllers

// DerivedServiceAnnotation names the annotation of a ServiceImport that holds the name of the Service made for it.
const DerivedServiceAnnotation = "multicluster.kubernetes.io/derived-service"
