package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/acp-io/acp/playground/internal/supervisor"
)

// nodesProcess is the name of the process that runs all members as real nodes.
const nodesProcess = "nodes"

// HubblePort returns the port purpose of the flow API of a member.
func HubblePort(member string) string { return "dataplane-" + member }

// realNodes returns the spec of the process that runs the members as real nodes. Their API servers have the same ports, authority
// and users as those of emulated members, so no other code depends on the difference.
func (f *Fleet) realNodes() (supervisor.Spec, error) {
	dir, err := f.ensureData(nodesProcess)
	if err != nil {
		return supervisor.Spec{}, err
	}
	ca := strings.TrimSuffix(f.PKI.ServerCA, ".crt")
	options := map[string]any{}
	for _, m := range Members() {
		hubble := f.PKI.HubbleServer[m]
		options[m] = map[string]any{
			"apiPort":   f.Ports["apiserver-"+m],
			"authority": map[string]string{"cert": ca + ".crt", "key": ca + ".key"},
			"tokenFile": f.Layout.tokenFile(m),
			"hubble":    map[string]any{"port": f.Ports[HubblePort(m)], "ca": f.PKI.HubbleCA, "cert": hubble.Cert, "key": hubble.Key},
		}
	}
	data, err := yaml.Marshal(options)
	if err != nil {
		return supervisor.Spec{}, fmt.Errorf("describe the nodes: %w", err)
	}
	config, ready := f.Layout.File("nodes.yaml"), f.Layout.File("nodes-ready")
	if err := writeAtomically(config, data); err != nil {
		return supervisor.Spec{}, fmt.Errorf("describe the nodes: %w", err)
	}
	return supervisor.Spec{
		Name: nodesProcess, Layer: LayerAPIServer, Path: f.nodes,
		Args: []string{
			"up", "--repo=" + f.Repo, "--state-dir=" + filepath.Join(dir, "state"), "--clusters=" + strings.Join(Members(), ","),
			"--config=" + config, "--ready-file=" + ready,
		},
		// The readiness file of an earlier start must not count for this one.
		BeforeStart: func(context.Context) error { return removeIfExists(ready) },
		Ready: func(context.Context) error {
			_, err := os.Stat(ready)
			return err
		},
		StopTimeout: time.Minute,
	}, nil
}

// removeIfExists removes a file. An absent file is not an error.
func removeIfExists(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}
