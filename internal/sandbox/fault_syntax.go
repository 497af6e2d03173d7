package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// faultSetting is one name=value of a fault's text.
type faultSetting struct {
	name string
	// common settings are every kind's.
	common bool
	// get gives the value's text, empty when it is not given.
	get func(Fault) string
	set func(*Fault, string) error
}

var faultSettings = []faultSetting{
	{"on", true, func(x Fault) string { return strings.Join(x.On, "+") }, func(x *Fault, v string) error {
		x.On = strings.Split(v, "+")
		return nil
	}},
	textSetting("tenant", true, func(x *Fault) *string { return &x.Tenant }),
	textSetting("order", true, func(x *Fault) *string { return &x.Order }),
	textSetting("payment", true, func(x *Fault) *string { return &x.Payment }),
	textSetting("reference", true, func(x *Fault) *string { return &x.Reference }),
	numberSetting("times", true, func(x *Fault) *int { return &x.Times }),
	{"for", false, func(x Fault) string { return durationText(x.For) }, func(x *Fault, v string) (err error) {
		x.For, err = time.ParseDuration(v)
		return err
	}},
	textSetting("when", false, func(x *Fault) *string { return &x.When }),
	textSetting("status", false, func(x *Fault) *string { return &x.Status }),
	textSetting("record", false, func(x *Fault) *string { return &x.Record }),
	numberSetting("code", false, func(x *Fault) *int { return &x.Code }),
	numberSetting("copies", false, func(x *Fault) *int { return &x.Copies }),
}

func textSetting(name string, common bool, field func(*Fault) *string) faultSetting {
	return faultSetting{name, common, func(x Fault) string { return *field(&x) }, func(x *Fault, v string) error {
		*field(x) = v
		return nil
	}}
}

func numberSetting(name string, common bool, field func(*Fault) *int) faultSetting {
	get := func(x Fault) string {
		if n := *field(&x); n != 0 {
			return strconv.Itoa(n)
		}
		return ""
	}
	return faultSetting{name, common, get, func(x *Fault, v string) (err error) {
		*field(x), err = strconv.Atoi(v)
		return err
	}}
}

func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// ParseFault reads a fault's text: its kind, and settings behind commas, such
// as "answer_lost,times=1,payment=pay_8472_b". Several places are joined by a
// plus sign: "outage,on=refunds.list+refunds.read".
func ParseFault(s string) (Fault, error) {
	kind, rest, more := strings.Cut(s, ",")
	x := Fault{Kind: FaultKind(kind)}
	if _, err := infoOf(x.Kind); err != nil {
		return Fault{}, err
	}
	seen := map[string]bool{}
	for more {
		var item string
		item, rest, more = strings.Cut(rest, ",")
		name, value, ok := strings.Cut(item, "=")
		if !ok || value == "" {
			return Fault{}, fmt.Errorf("%s: %q is not name=value", kind, item)
		}
		i := slices.IndexFunc(faultSettings, func(s faultSetting) bool { return s.name == name })
		if i < 0 {
			return Fault{}, fmt.Errorf("%s: unknown setting %q, want one of %s", kind, name, settingNames())
		}
		if seen[name] {
			return Fault{}, fmt.Errorf("%s: %s is given twice", kind, name)
		}
		seen[name] = true
		if err := faultSettings[i].set(&x, value); err != nil {
			return Fault{}, fmt.Errorf("%s: %s: %w", kind, name, cause(err))
		}
	}
	if err := x.Validate(); err != nil {
		return Fault{}, err
	}
	return x, nil
}

// cause leaves out the name of the function that could not read a number.
func cause(err error) error {
	if number := new(strconv.NumError); errors.As(err, &number) {
		return fmt.Errorf("%q: %w", number.Num, number.Err)
	}
	return err
}

func settingNames() string {
	names := make([]string, len(faultSettings))
	for i, s := range faultSettings {
		names[i] = s.name
	}
	return strings.Join(names, ", ")
}

// String gives the text that ParseFault reads.
func (x Fault) String() string {
	out := string(x.Kind)
	for _, s := range faultSettings {
		if v := s.get(x); v != "" {
			out += "," + s.name + "=" + v
		}
	}
	return out
}

// faultFields are a fault's fields without its methods.
type faultFields Fault

type faultJSON struct {
	faultFields
	For string `json:"for,omitempty"`
}

// MarshalJSON writes the duration as a text.
func (x Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(faultJSON{faultFields(x), durationText(x.For)})
}

// UnmarshalJSON reads it strictly.
func (x *Fault) UnmarshalJSON(data []byte) error {
	var w faultJSON
	if err := decode(data, &w); err != nil {
		return err
	}
	*x = Fault(w.faultFields)
	if w.For == "" {
		return nil
	}
	var err error
	if x.For, err = time.ParseDuration(w.For); err != nil {
		return fmt.Errorf("for: %w", err)
	}
	return nil
}
