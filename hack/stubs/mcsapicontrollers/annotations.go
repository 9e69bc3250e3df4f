// Package controllers replaces the package of the same name of sigs.k8s.io/mcs-api. Cilium uses one constant of it, and the module
// is not in every Go module proxy.
package controllers

// DerivedServiceAnnotation is the annotation of a ServiceImport with the name of the Service created for it.
const DerivedServiceAnnotation = "multicluster.kubernetes.io/derived-service"
