package controllers_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const hour = time.Hour

func metaTime(t time.Time) metav1.Time { return metav1.NewTime(t) }

func unstructuredField(u *unstructured.Unstructured, path ...string) (any, bool, error) {
	return unstructured.NestedFieldNoCopy(u.Object, path...)
}
