package controllers_test

import (
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/acp-io/acp/internal/testenv"
)

const hour = time.Hour

func repositoryFile(path string) string { return filepath.Join(testenv.Root(), path) }

func metaTime(t time.Time) metav1.Time { return metav1.NewTime(t) }

func unstructuredField(u *unstructured.Unstructured, path ...string) (any, bool, error) {
	return unstructured.NestedFieldNoCopy(u.Object, path...)
}
