// Command manifests prints the manifests that install ACP's programs, with names of one's own:
//
//	go run ./hack/manifests --namespace=access --registry=registry.example.com/acp --tag=v0.1.0 | kubectl apply -f -
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/acp-io/acp/deploy"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var n deploy.Names
	f := pflag.NewFlagSet("manifests", pflag.ContinueOnError)
	f.StringVar(&n.Namespace, "namespace", "acp-system", "namespace of ACP's programs")
	f.StringVar(&n.KubeFedNamespace, "kubefed-namespace", "kube-federation-system", "namespace of the KubeFedClusters")
	f.StringVar(&n.Adapter, "adapter", "acp-adapter", "service account of the adapter")
	f.StringVar(&n.Portal, "portal", "acp-portal", "service account of the portal")
	f.StringVar(&n.Collector, "flow-collector", "acp-flow-collector", "service account of the collector")
	f.StringVar(&n.Registry, "registry", "registry.example/acp", "where the images are")
	f.StringVar(&n.Tag, "tag", "latest", "tag of the images")
	folders := f.StringSlice("folder", deploy.Folders(), "folders of deploy that are printed")
	if err := f.Parse(args); err != nil {
		return err
	}
	for _, folder := range *folders {
		text, err := deploy.Render(folder, n)
		if err != nil {
			return err
		}
		fmt.Print(text)
	}
	return nil
}
