package approval

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/amends-dev/amends/internal/ident"
)

// Key25519 is an approver's own signing key; it lives in a file of the
// approver and in no service.
type Key25519 struct {
	ApproverID string
	KeyID      string
	Private    ed25519.PrivateKey
}

const (
	pemType        = "PRIVATE KEY"
	headerApprover = "Approver"
	headerKey      = "Key-Id"
)

// NewKey makes a key from entropy.
func NewKey(approverID, keyID string, entropy io.Reader) (Key25519, error) {
	if err := ident.Tokens("approver", approverID, "key", keyID); err != nil {
		return Key25519{}, err
	}
	_, priv, err := ed25519.GenerateKey(entropy)
	if err != nil {
		return Key25519{}, fmt.Errorf("generate approver key: %w", err)
	}
	return Key25519{ApproverID: approverID, KeyID: keyID, Private: priv}, nil
}

// Marshal gives the key file: PKCS #8 in PEM, approver and key id as headers.
func (k Key25519) Marshal() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.Private)
	if err != nil {
		return nil, fmt.Errorf("encode approver key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Headers: map[string]string{headerApprover: k.ApproverID, headerKey: k.KeyID}, Bytes: der}), nil
}

// ParseKey reads a key file.
func ParseKey(data []byte) (Key25519, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != pemType {
		return Key25519{}, errors.New("approver key: not a PEM private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key25519{}, fmt.Errorf("approver key: %w", err)
	}
	priv, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return Key25519{}, errors.New("approver key: not an Ed25519 key")
	}
	k := Key25519{ApproverID: block.Headers[headerApprover], KeyID: block.Headers[headerKey], Private: priv}
	if err := ident.Tokens("approver", k.ApproverID, "key", k.KeyID); err != nil {
		return Key25519{}, fmt.Errorf("approver key headers: %w", err)
	}
	return k, nil
}

// PublicEntry gives the key's entry for the registry, valid from a moment on.
func (k Key25519) PublicEntry(from time.Time) PublicKey {
	pub, _ := k.Private.Public().(ed25519.PublicKey) // the type of every Ed25519 private key's public half
	return PublicKey{ID: k.KeyID, Public: base64.StdEncoding.EncodeToString(pub), NotBefore: from.UTC().Truncate(time.Second)}
}
