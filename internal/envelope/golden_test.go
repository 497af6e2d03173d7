package envelope_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/amends-dev/amends/internal/envelope"
	amendsv1 "github.com/amends-dev/amends/proto/amends/v1"
)

// A golden file is a promise to messages already stored: -update only writes
// files that do not exist yet.
var update = flag.Bool("update", false, "write the golden files of versions that have none")

// Bug B68: fields renumbered, an old reader took true for false. The bytes of
// every version, once written, still mean the same.
func TestGoldenBytesB68(t *testing.T) {
	t.Parallel()
	for _, ty := range envelope.Types() {
		path := filepath.Join("testdata", ty.Name+"-"+ty.Version()+".golden")
		if _, err := os.Stat(path); err != nil {
			if !*update {
				t.Fatalf("%s has no golden bytes: run go test ./internal/envelope -update", path)
			}
			writeGolden(t, path, ty)
		}
	}
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatalf("golden files: %v, %v", files, err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".golden"), func(t *testing.T) {
			t.Parallel()
			checkGolden(t, path)
		})
	}
}

// A line of a golden file is one sealed message in hex; the line of the same
// number in the .json file is what it means.
func writeGolden(t *testing.T, path string, ty envelope.Type) {
	t.Helper()
	var wire, meaning bytes.Buffer
	for _, payload := range samples(t, ty) {
		data := seal(t, header(ty), payload)
		wire.WriteString(hex.EncodeToString(data) + "\n")
		meaning.Write(append(decoded(t, data), '\n'))
	}
	for name, b := range map[string][]byte{path: wire.Bytes(), path + ".json": meaning.Bytes()} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func checkGolden(t *testing.T, path string) {
	t.Helper()
	wire, meaning := lines(t, path), lines(t, path+".json")
	if len(wire) != len(meaning) {
		t.Fatalf("%d messages, %d meanings", len(wire), len(meaning))
	}
	for i, line := range wire {
		data, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := decoded(t, data); !sameMeaning(t, got, meaning[i]) {
			t.Errorf("message %d now means\n%s\nit was written as\n%s", i, got, meaning[i])
		}
		env, payload := openGolden(t, data)
		ty, _ := envelope.Lookup(env.GetType())
		if env.GetSchemaVersion() != ty.Version() {
			continue // an older version is only read
		}
		if want := samples(t, ty)[i]; !proto.Equal(payload, want) {
			t.Errorf("message %d is not the current sample; a changed message needs a new minor version\n got %v\nwant %v", i, payload, want)
		}
		if !bytes.Equal(seal(t, header(ty), payload), data) {
			t.Errorf("message %d is sealed into other bytes now", i)
		}
	}
}

func openGolden(t *testing.T, data []byte) (*amendsv1.Envelope, proto.Message) {
	t.Helper()
	var env amendsv1.Envelope
	if err := proto.Unmarshal(data, &env); err != nil {
		t.Fatal(err)
	}
	got, payload, err := envelope.Open(data, on(&env), received)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.ProtoReflect().GetUnknown()) + len(payload.ProtoReflect().GetUnknown()); n > 0 {
		t.Fatalf("%d bytes are in fields that are no longer known", n)
	}
	return got, payload
}

// decoded writes envelope and payload as one line of JSON with sorted keys.
func decoded(t *testing.T, data []byte) []byte {
	t.Helper()
	env, payload := openGolden(t, data)
	env.Payload = nil
	var out [2]any
	for i, m := range []proto.Message{env, payload} {
		text, err := protojson.MarshalOptions{EmitUnpopulated: true, UseProtoNames: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &out[i]); err != nil {
			t.Fatal(err)
		}
	}
	line, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// sameMeaning compares what a message means now with what it meant when it was
// written. A field that came later may be there, but must be empty.
func sameMeaning(t *testing.T, now []byte, then string) bool {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal(now, &a), json.Unmarshal([]byte(then), &b)); err != nil {
		t.Fatal(err)
	}
	return extends(a, b)
}

func extends(now, then any) bool {
	switch then := then.(type) {
	case map[string]any:
		fields, ok := now.(map[string]any)
		for name, v := range fields {
			if was, had := then[name]; had {
				ok = ok && extends(v, was)
			} else {
				ok = ok && slices.Contains([]string{"<nil>", "", "0", "false", "[]"}, fmt.Sprint(v))
			}
		}
		return ok && len(fields) >= len(then)
	case []any:
		list, ok := now.([]any)
		if !ok || len(list) != len(then) {
			return false
		}
		for i := range then {
			if !extends(list[i], then[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(now, then)
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}
