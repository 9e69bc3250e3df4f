// Package sbom lists what is in an image, as an SPDX 2.3 document: the Go modules that the linker recorded in the executable, Go's standard library, the npm
// packages that are bundled in the web UI, and the list of certificate authorities. The lists come from the source and the build, not from the guesses of
// a scanner.
package sbom

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/acp-io/acp/release"
	"github.com/acp-io/acp/release/internal/build"
)

// certificateModule is the Go module with the certificate authorities of every image.
const certificateModule = "golang.org/x/crypto/x509roots/fallback"

// component is a package in an image.
type component struct {
	name, version, purl, license, sha512, note string
}

// Contents describes what a program's image contains.
type Contents struct {
	// Executables contains the records of the linker, one for each platform of the subject.
	Executables []*buildinfo.BuildInfo
	// UI is what is bundled in the web UI, and nil where there is none. Root is the source's folder, with the UI's lock file.
	UI   *Bundled
	Root string
}

// Document returns the SPDX document of an image or an index. qualifier tells apart documents of one program, for example "linux/amd64".
func Document(s build.Source, p build.Program, qualifier string, subject v1.Hash, c Contents) (json.RawMessage, error) {
	components, err := c.components()
	if err != nil {
		return nil, fmt.Errorf("list what is in %s: %w", p.Name, err)
	}
	doc := &v2_3.Document{
		SPDXVersion:       v2_3.Version,
		DataLicense:       v2_3.DataLicense,
		SPDXIdentifier:    "DOCUMENT",
		DocumentName:      p.Name + " " + s.Version + " " + qualifier,
		DocumentNamespace: fmt.Sprintf("%s/sbom/%s/%s/%s", build.Repository, p.Name, s.Version, subject.Hex),
		CreationInfo: &v2_3.CreationInfo{
			Created:  s.Time.Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Organization", Creator: "ACP"}, {CreatorType: "Tool", Creator: "acp-release-" + s.Version}},
		},
	}
	const imageID, programID = "Image", "Program"
	image := spdxPackage(imageID, component{
		name:    p.Name,
		version: s.Version,
		license: "Apache-2.0",
		purl:    fmt.Sprintf("pkg:oci/%s@%s?tag=%s", p.Name, strings.Replace(subject.String(), ":", "%3A", 1), build.Tag(s.Version)),
	})
	image.PrimaryPackagePurpose = "CONTAINER"
	image.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: subject.Hex}}
	program := spdxPackage(
		programID,
		component{
			name:    build.Module,
			version: s.Version,
			license: "Apache-2.0",
			purl:    "pkg:golang/" + build.Module + "@" + s.Version,
			note:    "commit " + s.Commit,
		},
	)
	program.PrimaryPackagePurpose = "APPLICATION"
	doc.Packages = []*v2_3.Package{image, program}
	doc.Relationships = []*v2_3.Relationship{relationship("DOCUMENT", "DESCRIBES", imageID), relationship(imageID, "CONTAINS", programID)}
	for _, component := range components {
		id := identifier(component)
		doc.Packages = append(doc.Packages, spdxPackage(id, component))
		if component.name == certificateModule {
			doc.Relationships = append(doc.Relationships, relationship(imageID, "CONTAINS", id))
		} else {
			doc.Relationships = append(doc.Relationships, relationship(programID, "DEPENDS_ON", id))
		}
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(doc); err != nil {
		return nil, fmt.Errorf("encode the SPDX document of %s: %w", p.Name, err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// components returns everything below the program, each once, in the order of package URLs.
func (c Contents) components() ([]component, error) {
	all := map[string]component{}
	add := func(c component) { all[c.purl] = c }
	for _, info := range c.Executables {
		add(component{name: "stdlib", version: info.GoVersion, license: "BSD-3-Clause", purl: "pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go")})
		for _, m := range info.Deps {
			add(goModule(m.Path, m.Version, m.Sum, m.Replace))
		}
	}
	version, err := release.RequiredVersion(certificateModule)
	if err != nil {
		return nil, err
	}
	add(
		component{
			name:    certificateModule,
			version: version,
			license: "BSD-3-Clause",
			purl:    "pkg:golang/" + certificateModule + "@" + version,
			note:    "the certificate authorities in /etc/ssl/certs",
		},
	)
	if c.UI != nil {
		packages, err := npmPackages(c.Root, *c.UI)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			add(p)
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b component) int { return cmp.Compare(a.purl, b.purl) }), nil
}

func relationship(from common.ElementID, kind string, to common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{RefA: common.DocElementID{ElementRefID: from}, RefB: common.DocElementID{ElementRefID: to}, Relationship: kind}
}

func spdxPackage(id common.ElementID, c component) *v2_3.Package {
	p := &v2_3.Package{
		PackageSPDXIdentifier:     id,
		PackageName:               c.name,
		PackageVersion:            c.version,
		PackageDownloadLocation:   "NOASSERTION",
		PackageLicenseConcluded:   "NOASSERTION",
		PackageLicenseDeclared:    cmp.Or(c.license, "NOASSERTION"),
		PackageCopyrightText:      "NOASSERTION",
		PackageSourceInfo:         c.note,
		PackageExternalReferences: []*v2_3.PackageExternalReference{{Category: "PACKAGE-MANAGER", RefType: "purl", Locator: c.purl}},
	}
	if c.sha512 != "" {
		p.PackageChecksums = []common.Checksum{{Algorithm: common.SHA512, Value: c.sha512}}
	}
	return p
}

var notInIdentifiers = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// identifier returns an identifier that differs between components, made of their package URLs.
func identifier(c component) common.ElementID {
	return common.ElementID("Package-" + notInIdentifiers.ReplaceAllString(strings.TrimPrefix(c.purl, "pkg:"), "-"))
}
