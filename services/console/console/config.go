package console

import (
	"errors"
	"fmt"
	"slices"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/ident"
	"github.com/amends-dev/amends/internal/readmodel"
	"github.com/amends-dev/amends/internal/subject"
)

// Config is the console's configuration.
type Config struct {
	boot.Common `yaml:",inline"`
	// Listen is host:port of the staff API and pages; port 0 takes a free one.
	Listen string   `yaml:"listen"`
	TLS    edge.TLS `yaml:"tls,omitempty"`
	Staff  []Staff  `yaml:"staff"`
	// Redis is where the gateways keep the read model; the console looks there
	// for what waits for staff.
	Redis readmodel.Access `yaml:"redis"`
}

// Staff is a person, or a tool of a person, with a token.
type Staff struct {
	ID string `yaml:"id"`
	// TokenSHA256 is the lower-case hex SHA-256 of the token.
	TokenSHA256 string   `yaml:"token_sha256"`
	Tenants     []string `yaml:"tenants"`
	// Everybody may stop the effects of their tenants. MayStopAll lets them
	// stop everybody's; MayResume lets them release what they may stop.
	MayStopAll bool `yaml:"may_stop_all,omitempty"`
	MayResume  bool `yaml:"may_resume,omitempty"`
}

func (s *Staff) sees(tenant string) bool { return slices.Contains(s.Tenants, tenant) }

// Defaults gives the configuration a file is decoded over.
func Defaults() Config { return Config{Listen: "127.0.0.1:8081"} }

// Validate checks the console's own part as a whole.
func (c Config) Validate() error {
	var problems []error
	if c.Listen == "" {
		problems = append(problems, errors.New("listen: missing"))
	}
	problems = append(problems, c.TLS.Validate())
	if c.Redis.Addr == "" {
		problems = append(problems, errors.New("redis.addr: missing"))
	}
	if len(c.Staff) == 0 {
		problems = append(problems, errors.New("staff: none"))
	}
	_, err := c.tokens()
	return errors.Join(append(problems, err)...)
}

// tokens checks the staff and gives them by token.
func (c Config) tokens() (*edge.Tokens[*Staff], error) {
	var tokens edge.Tokens[*Staff]
	var problems []error
	for i := range c.Staff {
		s := &c.Staff[i]
		err := ident.Tokens("id", s.ID)
		if err == nil && len(s.Tenants) == 0 {
			err = errors.New("tenants: none")
		}
		for _, t := range s.Tenants {
			err = errors.Join(err, subject.CheckTenant("tenants", t))
		}
		if err == nil {
			if err = tokens.Add(s.TokenSHA256, s); err != nil {
				err = fmt.Errorf("token_sha256: %w", err)
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("staff[%d]: %w", i, err))
		}
	}
	return &tokens, errors.Join(problems...)
}
