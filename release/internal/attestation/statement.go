package attestation

import (
	"bytes"
	"context"
	"crypto"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	sigstorebundle "github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/acp-io/acp/release/internal/image"
)

// The types of what a statement says about its subject.
const (
	// SignatureType is cosign's: the signer vouches for the subject, and says no more.
	SignatureType = "https://sigstore.dev/cosign/sign/v1"
	// SBOMType has an SPDX document as its predicate; cosign calls it "spdxjson".
	SBOMType = "https://spdx.dev/Document"
	// ProvenanceType is SLSA's; cosign calls it "slsaprovenance1".
	ProvenanceType = "https://slsa.dev/provenance/v1"
)

// BundleType is the media type of Sigstore's bundles.
const BundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

const payloadType = "application/vnd.in-toto+json"

// statement is an in-toto statement, version 1.
type statement struct {
	Type          string          `json:"_type"`
	Subject       []subject       `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest"`
}

// Statement returns an in-toto statement about an image.
func Statement(name string, digest v1.Hash, predicateType string, predicate json.RawMessage) ([]byte, error) {
	s := statement{
		Type:          "https://in-toto.io/Statement/v1",
		Subject:       []subject{{Name: name, Digest: map[string]string{digest.Algorithm: digest.Hex}}},
		PredicateType: predicateType,
		Predicate:     predicate,
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode a statement: %w", err)
	}
	return encoded, nil
}

// Attach signs a statement about a subject and returns it as an attachment, in the form in which cosign 3 stores it. created is not read by anything that
// verifies.
func Attach(
	ctx context.Context,
	key *Key,
	name string,
	about v1.Descriptor,
	predicateType string,
	predicate json.RawMessage,
	created time.Time,
	annotations map[string]string,
) (image.Attachment, error) {
	encoded, err := Statement(name, about.Digest, predicateType, predicate)
	if err != nil {
		return image.Attachment{}, err
	}
	bundle, err := bundleOf(ctx, key, &sign.DSSEData{Data: encoded, PayloadType: payloadType})
	if err != nil {
		return image.Attachment{}, fmt.Errorf("sign a statement about %s: %w", name, err)
	}
	all := map[string]string{
		"org.opencontainers.image.created":  created.Format(time.RFC3339),
		"dev.sigstore.bundle.content":       "dsse-envelope",
		"dev.sigstore.bundle.predicateType": predicateType,
	}
	for k, v := range annotations {
		all[k] = v
	}
	return image.Attachment{Subject: about, ArtifactType: BundleType, Annotations: all, Content: bundle}, nil
}

// SignFile returns a bundle with the signature of a file's content, for `cosign verify-blob --bundle`.
func SignFile(ctx context.Context, key *Key, content []byte) ([]byte, error) {
	return bundleOf(ctx, key, &sign.PlainData{Data: content})
}

func bundleOf(ctx context.Context, key *Key, content sign.Content) ([]byte, error) {
	bundle, err := sign.Bundle(content, key, sign.BundleOptions{Context: ctx})
	if err != nil {
		return nil, fmt.Errorf("make a bundle: %w", err)
	}
	encoded, err := protojson.Marshal(bundle)
	if err != nil {
		return nil, fmt.Errorf("encode a bundle: %w", err)
	}
	// protojson varies its spaces from program to program on purpose.
	var compact bytes.Buffer
	if err := json.Compact(&compact, encoded); err != nil {
		return nil, fmt.Errorf("encode a bundle: %w", err)
	}
	return compact.Bytes(), nil
}

// Verify checks that a bundle is signed with the key and is about the digest, and returns the type of its statement and the predicate.
func Verify(encoded []byte, key crypto.PublicKey, digest v1.Hash) (predicateType string, predicate json.RawMessage, err error) {
	raw, err := hex.DecodeString(digest.Hex)
	if err != nil {
		return "", nil, fmt.Errorf("digest %s: %w", digest, err)
	}
	b, err := verified(encoded, key, verify.WithArtifactDigest(digest.Algorithm, raw))
	if err != nil {
		return "", nil, err
	}
	var s statement
	if err := json.Unmarshal(b.GetDsseEnvelope().GetPayload(), &s); err != nil {
		return "", nil, fmt.Errorf("read a statement: %w", err)
	}
	return s.PredicateType, s.Predicate, nil
}

// VerifyFile checks that a bundle of SignFile is signed with the key and is about the content.
func VerifyFile(encoded []byte, key crypto.PublicKey, content []byte) error {
	_, err := verified(encoded, key, verify.WithArtifact(bytes.NewReader(content)))
	return err
}

func verified(encoded []byte, key crypto.PublicKey, artifact verify.ArtifactPolicyOption) (*sigstorebundle.Bundle, error) {
	var b sigstorebundle.Bundle
	if err := b.UnmarshalJSON(encoded); err != nil {
		return nil, fmt.Errorf("read a bundle: %w", err)
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("use the public key: %w", err)
	}
	trusted := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return root.NewExpiringKey(verifier, time.Time{}, time.Time{}), nil
	})
	v, err := verify.NewVerifier(trusted, verify.WithNoObserverTimestamps())
	if err != nil {
		return nil, fmt.Errorf("make a verifier: %w", err)
	}
	if _, err := v.Verify(&b, verify.NewPolicy(artifact, verify.WithKey())); err != nil {
		return nil, fmt.Errorf("verify a bundle: %w", err)
	}
	return &b, nil
}
