package manifest

import (
	"bytes"
	"errors"
	"os"
	"strings"
)

// Secret says where a text is that no file under version control may hold: a
// key that a stage computes with and never sees, a password of the store.
type Secret struct {
	Name string
	Env  string // the environment variable that holds it, or
	File string // the file that holds it
}

// MaxSecret bounds a secret, in bytes.
const MaxSecret = 64 << 10

// Read gets the secret. The end of the last line of a file is not part of it.
// No error shows any of it.
func (s Secret) Read() ([]byte, error) {
	if s.Env != "" {
		value, found := os.LookupEnv(s.Env)
		if !found || value == "" {
			return nil, errors.New("the environment variable " + s.Env + " is not set")
		}
		return []byte(value), nil
	}
	value, err := readFile(s.File, MaxSecret)
	if err != nil {
		return nil, errors.New(s.File + " cannot be read: " + reason(err).Error())
	}
	value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	if len(value) == 0 {
		return nil, errors.New(s.File + " is empty")
	}
	return value, nil
}

// ReadSecrets gets all secrets of a stage. A secret that is not there is an
// *Errors at its key.
func (m *Manifest) ReadSecrets(s *Stage) (map[string][]byte, error) {
	var f faults
	values := map[string][]byte{}
	for _, secret := range s.Secrets {
		value, err := secret.Read()
		if err != nil {
			f = append(f, m.Errorf(s.Spec.Name, "secrets."+secret.Name, "%w", err))
		}
		values[secret.Name] = value
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return values, nil
}

func readSecrets(t *table) []Secret {
	var out []Secret
	for _, name := range t.keys() {
		if _, err := asName(name); err != nil {
			t.known = append(t.known, name)
			t.blame(t.layerOf(name).source, name, "%w", err)
			continue
		}
		if s := readSecret(t, name); s != (Secret{}) {
			out = append(out, s)
		}
	}
	return out
}

// readSecret takes where a secret is; zero where the key is absent or wrong.
func readSecret(t *table, key string) Secret {
	kind, rest, _ := strings.Cut(read(t, key, "", asSecretSource), ":")
	switch kind {
	case "env":
		return Secret{Name: key, Env: rest}
	case "file":
		return Secret{Name: key, File: t.sourceOf([]string{key}).beside(rest)}
	}
	return Secret{}
}

// asSecretSource never quotes the value: it can be the secret itself.
func asSecretSource(v any) (string, error) {
	s, _ := v.(string)
	kind, rest, _ := strings.Cut(s, ":")
	if kind != "env" && kind != "file" || rest == "" {
		return "", errors.New(`want "env:VAR" or "file:PATH", never the secret itself`)
	}
	return s, nil
}
