package federation

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// page is a part of a list. Next is the token of the following part, or "" for the last one.
type page struct {
	Items         []unstructured.Unstructured
	Version, Next string
}

// pageReader reads the objects of a kind page by page. The returned function decodes what was read, which takes ten times the memory. A page of one object
// is a probe, which is not decoded: that it is a list is checked when it is read.
type pageReader func(ctx context.Context, o metav1.ListOptions) (decode func() (page, error), err error)

// decoding has room for the pages that are decoded at the same time. At the start of the adapter all members are listed, and more pages at a time than
// there are processors would only take memory. To wait for a member's answer takes no room here, so that no member can delay the others.
var decoding = make(chan struct{}, runtime.GOMAXPROCS(0))

// pagesOf returns a reader that uses a dynamic client.
func pagesOf(client dynamic.ResourceInterface) pageReader {
	return func(ctx context.Context, o metav1.ListOptions) (func() (page, error), error) {
		list, err := client.List(ctx, o)
		if err != nil {
			return nil, err
		}
		return func() (page, error) { return page{list.Items, list.GetResourceVersion(), list.GetContinue()}, nil }, nil
	}
}

// newPageReader returns a reader of a kind in a member. A dynamic client decodes each object of a list twice, once as part of the list, which
// it drops. At the start of the adapter, all objects of all members are listed.
func newPageReader(config *rest.Config, client *http.Client, kind Kind) (pageReader, error) {
	config = dynamic.ConfigFor(config)
	config.GroupVersion, config.APIPath = nil, "/" // each request has its whole path
	c, err := rest.UnversionedRESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client of lists: %w", err)
	}
	path := []string{"/apis", kind.TargetResource.Group, kind.TargetResource.Version}
	if kind.TargetResource.Group == "" {
		path = []string{"/api", kind.TargetResource.Version}
	}
	if kind.Namespace != "" {
		path = append(path, "namespaces", kind.Namespace)
	}
	path = append(path, kind.TargetResource.Resource)
	return func(ctx context.Context, o metav1.ListOptions) (func() (page, error), error) {
		request := c.Get().AbsPath(path...).Param("limit", strconv.FormatInt(o.Limit, 10))
		for name, value := range map[string]string{"continue": o.Continue, "fieldSelector": o.FieldSelector} {
			if value != "" {
				request.Param(name, value)
			}
		}
		result := request.Do(ctx)
		if err := result.Error(); err != nil {
			return nil, err
		}
		body, err := result.Raw()
		if err != nil {
			return nil, err
		}
		if o.Limit == 1 {
			if err := checkList(body); err != nil {
				return nil, err
			}
		}
		return func() (page, error) { return parsePage(body) }, nil
	}, nil
}

// checkList returns an error for what is not a list, without decoding objects.
func checkList(body []byte) error {
	var list metav1.TypeMeta
	if err := json.Unmarshal(body, &list); err != nil {
		return fmt.Errorf("read a list: %w", err)
	}
	return checkListKind(list.Kind)
}

// checkListKind returns an error for the kind of what is not a list, which must not look like a list without objects.
func checkListKind(kind string) error {
	if !strings.HasSuffix(kind, "List") {
		return fmt.Errorf("read a list: the answer has the kind %q", kind)
	}
	return nil
}

// parsePage decodes a list as the dynamic client does: integers are int64, and an object without a kind has that of the list.
func parsePage(body []byte) (page, error) {
	var list struct {
		metav1.TypeMeta
		Metadata metav1.ListMeta  `json:"metadata"`
		Items    []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return page{}, fmt.Errorf("read a list: %w", err)
	}
	if err := checkListKind(list.Kind); err != nil {
		return page{}, err
	}
	out := page{make([]unstructured.Unstructured, len(list.Items)), list.Metadata.ResourceVersion, list.Metadata.Continue}
	for i, object := range list.Items {
		if object == nil {
			object = map[string]any{}
		}
		u := unstructured.Unstructured{Object: object}
		if u.GetKind() == "" && u.GetAPIVersion() == "" {
			u.SetKind(strings.TrimSuffix(list.Kind, "List"))
			u.SetAPIVersion(list.APIVersion)
		}
		out.Items[i] = u
	}
	return out, nil
}
