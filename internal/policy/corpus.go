package policy

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed corpus/*.yaml
var embedded embed.FS

// EmbeddedVersion is the version of the corpus that is built in.
const EmbeddedVersion = "policy-corpus/7"

const (
	manifestFile = "corpus.yaml"
	maxFile      = 64 << 10
	maxDocuments = 256
)

// Corpus is a set of policy documents under one version. It does not change.
type Corpus struct {
	version   string
	documents []*Document
	index     index
}

// Embedded gives the corpus that is built in.
func Embedded() (*Corpus, error) {
	dir, err := fs.Sub(embedded, "corpus")
	if err != nil {
		return nil, fmt.Errorf("embedded policy corpus: %w", err)
	}
	return Load(dir)
}

// Load reads a corpus directory: corpus.yaml with the version, and one file a
// document version. Nothing is loaded when anything is wrong.
func Load(dir fs.FS) (*Corpus, error) {
	var head struct {
		Version string `yaml:"version"`
	}
	if err := decode(dir, manifestFile, &head); err != nil {
		return nil, fmt.Errorf("load policy corpus: %w", err)
	}
	if head.Version == "" || len(head.Version) > 64 {
		return nil, fmt.Errorf("load policy corpus: version: length %d, want 1 to 64", len(head.Version))
	}
	names, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("load policy corpus: %w", err)
	}
	c := &Corpus{version: head.Version}
	var problems []error
	for _, name := range names {
		if path.Base(name) == manifestFile {
			continue
		}
		var file documentFile
		err := decode(dir, name, &file)
		if err == nil {
			var d *Document
			if d, err = file.document(); err == nil {
				c.documents = append(c.documents, d)
				continue
			}
		}
		problems = append(problems, fmt.Errorf("%s: %w", name, err))
	}
	if len(problems) == 0 {
		problems = append(problems, c.chains())
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("load policy corpus %s: %w", head.Version, err)
	}
	c.index = newIndex(c.documents)
	return c, nil
}

// decode reads exactly one YAML document without unknown keys.
func decode(dir fs.FS, name string, into any) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxFile:
		return fmt.Errorf("more than %d bytes", maxFile)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil {
		return err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

// chains checks the versions of each policy against each other and sorts the
// documents.
func (c *Corpus) chains() error {
	if len(c.documents) == 0 || len(c.documents) > maxDocuments {
		return fmt.Errorf("%d documents, want 1 to %d", len(c.documents), maxDocuments)
	}
	slices.SortFunc(c.documents, func(a, b *Document) int {
		if a.ID != b.ID {
			return strings.Compare(a.ID, b.ID)
		}
		return int(a.Version) - int(b.Version)
	})
	byKey := make(map[key]*Document, len(c.documents))
	var problems []error
	for _, d := range c.documents {
		if byKey[d.key()] != nil {
			problems = append(problems, fmt.Errorf("%s v%d is there twice", d.ID, d.Version))
		}
		byKey[d.key()] = d
	}
	for _, d := range c.documents {
		if d.SupersededBy == 0 {
			continue
		}
		next := byKey[key{d.ID, d.SupersededBy}]
		switch {
		case next == nil:
			problems = append(problems, fmt.Errorf("%s v%d is superseded by v%d, which is not there", d.ID, d.Version, d.SupersededBy))
		case next.EffectiveFrom.Before(d.EffectiveFrom):
			problems = append(problems, fmt.Errorf("%s v%d is superseded by an earlier v%d", d.ID, d.Version, d.SupersededBy))
		}
	}
	return errors.Join(problems...)
}

// Version names the corpus.
func (c *Corpus) Version() string { return c.version }
