package boot

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

const environmentPrefix = "AMENDS_"

// override replaces values of the struct cfg by variables of the environment.
// It returns the AMENDS_ variables that name no value, and what went wrong.
func override(cfg reflect.Value, environ []string) (unused []string, problems []error) {
	targets := map[string]reflect.Value{}
	problems = collect(cfg, "", targets)
	for _, pair := range environ {
		name, text, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, environmentPrefix) {
			continue
		}
		target, ok := targets[name]
		switch {
		case !ok:
			unused = append(unused, name)
		case target.Kind() == reflect.String:
			target.SetString(text)
		case text == "":
			problems = append(problems, fmt.Errorf("%s: empty", name))
		default:
			if err := decode([]byte(text), target.Addr().Interface()); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	slices.Sort(unused)
	return unused, problems
}

// collect maps the variable's name to the place of every value in a struct.
func collect(s reflect.Value, path string, into map[string]reflect.Value) (problems []error) {
	for i := range s.NumField() {
		f := s.Type().Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case options == "inline":
			problems = append(problems, collect(s.Field(i), path, into)...)
			continue
		case !f.IsExported() || key == "-":
			continue
		case key == "":
			key = strings.ToLower(f.Name) // as the YAML decoder has it
		}
		if f.Type.Kind() == reflect.Struct {
			problems = append(problems, collect(s.Field(i), path+key+"_", into)...)
			continue
		}
		name := environmentPrefix + strings.ToUpper(path+key)
		if _, taken := into[name]; taken {
			problems = append(problems, fmt.Errorf("%s stands for two keys", name))
		}
		into[name] = s.Field(i)
	}
	return problems
}
