package gateway

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/amends-dev/amends/internal/edge"
)

//go:embed openapi.yaml
var openAPI []byte

// openAPIJSON is the document as it is served.
var openAPIJSON = sync.OnceValues(func() ([]byte, error) {
	var doc map[string]any
	if err := yaml.Unmarshal(openAPI, &doc); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode openapi.yaml: %w", err)
	}
	return out, nil
})

// describe handles GET /openapi.json, for anybody.
func (g *gateway) describe(w http.ResponseWriter, _ *http.Request) {
	edge.WriteBody(w, http.StatusOK, g.api)
}
