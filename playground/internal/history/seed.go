package history

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/acp-io/acp/api/v1alpha1"
	"github.com/acp-io/acp/internal/audit"
	"github.com/acp-io/acp/internal/audit/sqlite"
	"github.com/acp-io/acp/internal/policy"
	"github.com/acp-io/acp/playground/internal/demo"
	"github.com/acp-io/acp/playground/internal/fleet"
)

// MaxDays is the maximum length of the past, which bounds the time that it takes to generate.
const MaxDays = 30

// Config configures the generated past.
type Config struct {
	// Store is the file of the flow store. An existing file is not changed.
	Store string
	// Traffic is the traffic file, Workloads the list of workloads, and Objects the folder with the policies of the demo.
	Traffic, Workloads, Objects string
	// Days is the length of the past in days, ending at To.
	Days int
	To   time.Time
}

// Result describes the generated past.
type Result struct {
	// Made is false when the store already existed.
	Made        bool
	Rollups     int
	Connections int64
}

// Seed creates the store with its past. The file is created completely or not at all.
func Seed(ctx context.Context, c Config) (Result, error) {
	if _, err := os.Stat(c.Store); err == nil {
		return Result{}, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Result{}, fmt.Errorf("look for the flow store: %w", err)
	}
	w, err := read(c)
	if err != nil {
		return Result{}, err
	}
	dir := c.Store + ".new"
	if err := os.RemoveAll(dir); err != nil { // left by an interrupted start
		return Result{}, fmt.Errorf("remove an unfinished history: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return Result{}, fmt.Errorf("make a folder for the history: %w", err)
	}
	defer os.RemoveAll(dir)
	temp := filepath.Join(dir, filepath.Base(c.Store))
	r, err := fill(ctx, temp, w, c)
	if err != nil {
		return r, fmt.Errorf("generate the history: %w", err)
	}
	if err := os.Rename(temp, c.Store); err != nil {
		return r, fmt.Errorf("put the history in its place: %w", err)
	}
	return r, nil
}

func read(c Config) (input, error) {
	var w input
	var err error
	if w.lines, err = loadLines(c.Traffic); err != nil {
		return w, err
	}
	if w.workloads, err = demo.LoadWorkloads(c.Workloads); err != nil {
		return w, err
	}
	objects, err := fleet.ParseDir(c.Objects)
	if err != nil {
		return w, err
	}
	w.policies, err = snapshot(objects)
	return w, err
}

// snapshot returns the policy snapshot of the collector once the objects of the demo are in the host cluster.
func snapshot(objects []*unstructured.Unstructured) (*policy.Snapshot, error) {
	var in policy.Input
	for _, o := range objects {
		var err error
		switch o.GetKind() {
		case "ResourceClass":
			in.ResourceClasses, err = add(in.ResourceClasses, o)
		case "SubjectClass":
			in.SubjectClasses, err = add(in.SubjectClasses, o)
		case "ProtectedResource":
			in.Resources, err = add(in.Resources, o)
		case "ExternalWorkload":
			in.Workloads, err = add(in.Workloads, o)
		case "AccessControlPolicy":
			in.Policies, err = add(in.Policies, o)
		}
		if err != nil {
			return nil, fmt.Errorf("read the demo's %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return policy.NewSnapshot(in), nil
}

func add[T v1alpha1.ResourceClass | v1alpha1.SubjectClass | v1alpha1.ProtectedResource | v1alpha1.ExternalWorkload | v1alpha1.AccessControlPolicy](
	list []*T, o *unstructured.Unstructured,
) ([]*T, error) {
	t := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, t, true); err != nil {
		return nil, err
	}
	return append(list, t), nil
}

func fill(ctx context.Context, path string, w input, c Config) (r Result, err error) {
	store, err := sqlite.Open(ctx, path)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, store.Close()) }() // closing the last connection merges the write-ahead log into the file
	to := c.To.UTC().Truncate(audit.BucketWidth)
	from := to.AddDate(0, 0, -c.Days)
	if err := store.Append(ctx, w.coverage(from, to)); err != nil {
		return r, err
	}
	batch := 0
	err = w.generate(from, to, func(rollups []audit.Rollup) error {
		batch++
		r.Rollups += len(rollups)
		for _, roll := range rollups {
			r.Connections += roll.Count
		}
		return store.Append(ctx, &audit.Batch{ID: fmt.Sprintf("history-%d", batch), Rollups: rollups})
	})
	r.Made = err == nil
	return r, err
}
