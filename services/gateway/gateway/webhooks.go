package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/amends-dev/amends/internal/boot"
	"github.com/amends-dev/amends/internal/deskapi"
	"github.com/amends-dev/amends/internal/edge"
	"github.com/amends-dev/amends/internal/webhook"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
	"github.com/amends-dev/amends/services/gateway/deliveries"
)

// Webhook is where a channel gets the replies of its cases. Without a URL it
// gets none.
type Webhook struct {
	URL string `yaml:"url"`
	// SecretFiles hold what is signed with, whsec_...; several are a rotation
	// and all sign.
	SecretFiles []string `yaml:"secret_files"`
	// AllowPrivate lets it be any address and plain http; for demonstrations.
	AllowPrivate bool `yaml:"allow_private"`
	// Since leaves out replies sent before, and enables an endpoint that was
	// disabled before.
	Since time.Time `yaml:"since"`
}

func (w Webhook) validate() error {
	switch {
	case w.URL == "" && len(w.SecretFiles) == 0 && !w.AllowPrivate && w.Since.IsZero():
		return nil
	case len(w.SecretFiles) == 0:
		return errors.New("webhook.secret_files: none")
	}
	if err := webhook.CheckURL(w.URL, w.AllowPrivate); err != nil {
		return fmt.Errorf("webhook.%w", err)
	}
	return nil
}

// webhooks checks that a channel has one webhook, whichever of its keys has it.
func (c Config) webhooks() error {
	var problems []error
	seen := map[[2]string]bool{}
	for i, ch := range c.Channels {
		if err := ch.Webhook.validate(); err != nil {
			problems = append(problems, fmt.Errorf("channels[%d]: %w", i, err))
		}
		if ch.Webhook.URL == "" {
			continue
		}
		if at := [2]string{ch.Tenant, ch.Name}; seen[at] {
			problems = append(problems, fmt.Errorf("channels[%d]: the channel has a webhook already", i))
		} else {
			seen[at] = true
		}
	}
	return errors.Join(problems...)
}

// endpoints reads the secrets of the channels' webhooks.
func (c Config) endpoints(log *slog.Logger) ([]deliveries.Endpoint, error) {
	var out []deliveries.Endpoint
	for _, ch := range c.Channels {
		w := ch.Webhook
		if w.URL == "" {
			continue
		}
		secrets, err := readSecrets(w.SecretFiles, log)
		if err != nil {
			return nil, fmt.Errorf("webhook of channel %s: %w", ch.Name, err)
		}
		if w.AllowPrivate {
			log.Warn("a webhook may lead to a private address", slog.String("tenant", ch.Tenant), slog.String("channel", ch.Name))
		}
		out = append(out, deliveries.Endpoint{
			Tenant: ch.Tenant, Channel: ch.Name, URL: w.URL, Secrets: secrets, Private: w.AllowPrivate, Since: w.Since,
		})
	}
	return out, nil
}

func readSecrets(files []string, log *slog.Logger) (webhook.Secrets, error) {
	texts := make([]string, len(files))
	for i, file := range files {
		text, err := boot.ReadSecret(file, log)
		if err != nil {
			return webhook.Secrets{}, err
		}
		texts[i] = string(text)
	}
	s, err := webhook.ParseSecrets(texts...)
	if err != nil {
		return s, fmt.Errorf("%w: %w", boot.ErrConfig, err)
	}
	return s, nil
}

// showDeliveries handles GET /v1/cases/{id}/deliveries, for the channel the
// case came by.
func (g *gateway) showDeliveries(w http.ResponseWriter, r *http.Request, c caller) *deskapi.Problem {
	s, problem := g.own(r, c)
	switch {
	case problem != nil:
		return problem
	case s.view.GetChannel() != c.channel.Name:
		return unknownCase
	}
	log, err := deliveries.Log(r.Context(), g.bus, c.tenant, s.view.GetCaseId())
	if err != nil {
		g.log.LogAttrs(r.Context(), slog.LevelWarn, "delivery log not readable", slog.String("tenant", c.tenant),
			slog.String("case_id", s.view.GetCaseId()), slog.Any("error", err))
		return unavailable
	}
	edge.WriteJSON(w, http.StatusOK, shownDeliveries(s.view.GetCaseId(), log))
	return nil
}

func shownDeliveries(caseID string, log *amendsv1.DeliveryLog) deskapi.Deliveries {
	out := deskapi.Deliveries{CaseID: caseID, Deliveries: make([]deskapi.Delivery, 0, len(log.GetDeliveries()))}
	for _, d := range log.GetDeliveries() {
		shown := deskapi.Delivery{
			WebhookID: d.GetWebhookId(), Version: d.GetVersion(), Kind: d.GetKind(), Status: deliveries.StatusName(d.GetStatus()),
			CreatedAt: deskapi.TimeOf(d.GetCreatedAt()), NextAt: deskapi.TimeOf(d.GetNextAt()), SettledAt: deskapi.TimeOf(d.GetSettledAt()),
			Attempts: make([]deskapi.DeliveryAttempt, 0, len(d.GetAttempts())),
		}
		for _, a := range d.GetAttempts() {
			shown.Attempts = append(shown.Attempts, deskapi.DeliveryAttempt{
				Number: a.GetNumber(), At: deskapi.TimeOf(a.GetAt()), StatusCode: a.GetStatusCode(), Reason: a.GetReason(),
			})
		}
		out.Deliveries = append(out.Deliveries, shown)
	}
	return out
}
