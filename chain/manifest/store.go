package manifest

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Store says where shared state is kept.
type Store struct {
	URL         string        // memory:// redis:// rediss:// redis+sentinel:// rediss+sentinel:// redis+cluster:// rediss+cluster://
	Namespace   string        // before every key
	Timeout     time.Duration // of one operation, below every stage's
	Replicas    int           // processes that share the limits, where the store cannot tell, from 1
	Pool        int           // connections per node, from 1; 0 leaves it to the driver
	DialTimeout time.Duration // of a new connection; 0 leaves it to the engine
	Username    Secret        // wins over the URL's; zero if there is none
	Password    Secret        // as Username
	CA          string        // the path of a PEM file: who may sign the server's certificate; empty for those of the system
	Cert, Key   string        // the paths of PEM files: the certificate that the server asks for; both or none
}

// Shared reports whether other processes see the store.
func (s Store) Shared() bool { return s.scheme() != "memory" }

func (s Store) scheme() string {
	scheme, _, _ := strings.Cut(s.URL, "://")
	return scheme
}

// Where is the URL without what may be secret in it.
func (s Store) Where() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return s.scheme() + "://"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// ReadCredentials gets the user and the password that stand outside of the URL;
// empty for one that the manifest does not name. What is not there is an *Errors
// at its key.
func (m *Manifest) ReadCredentials() (username, password string, err error) {
	var f faults
	get := func(s Secret) string {
		if s == (Secret{}) {
			return ""
		}
		value, err := s.Read()
		if err != nil {
			f = append(f, m.StoreErrorf(s.Name, "%w", err))
		}
		return string(value)
	}
	username, password = get(m.Store.Username), get(m.Store.Password)
	return username, password, f.err()
}

var asStoreTimeout = asDuration(time.Millisecond, time.Minute)

func readStore(t *table) Store {
	defer t.close()
	s := Store{
		URL:         read(t, "url", DefaultStoreURL, asStoreURL),
		Namespace:   read(t, "namespace", DefaultNamespace, asName),
		Timeout:     read(t, "timeout", DefaultStoreTimeout, asStoreTimeout),
		Replicas:    int(read(t, "replicas", 1, asInt(1, 1e6))),
		Pool:        int(read(t, "pool", 0, asInt(1, 1e4))),
		DialTimeout: read(t, "dial_timeout", 0, asStoreTimeout),
		Username:    readSecret(t, "username"),
		Password:    readSecret(t, "password"),
		CA:          readPath(t, "ca"),
		Cert:        readPath(t, "cert"),
		Key:         readPath(t, "key"),
	}
	if s.Shared() && !t.has("namespace") {
		t.errorf([]string{"namespace"}, "missing: name what stands before every key, so that others can use the same server")
	}
	s.checkTLS(t)
	return s
}

// checkTLS keeps a connection that is not encrypted from looking like one that
// is.
func (s Store) checkTLS(t *table) {
	for _, key := range []string{"ca", "cert", "key"} {
		if t.has(key) && s.Shared() && !strings.HasPrefix(s.scheme(), "rediss") {
			t.errorf([]string{key}, "for TLS alone, and url has none: write %s:// there", strings.Replace(s.scheme(), "redis", "rediss", 1))
		}
	}
	switch {
	case t.has("cert") && !t.has("key"):
		t.errorf([]string{"cert"}, "without its key: add key, the file with the private key")
	case t.has("key") && !t.has("cert"):
		t.errorf([]string{"key"}, "without its certificate: add cert, the file with the certificate")
	}
}

var storeSchemes = []string{"memory", "redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"}

// asStoreURL never quotes the URL: it can carry a password.
func asStoreURL(v any) (string, error) {
	s, err := asText(v)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(s)
	if err != nil || !slices.Contains(storeSchemes, u.Scheme) {
		return "", errors.New("no URL of a store: want memory://, redis://, redis+sentinel:// or redis+cluster://, or with TLS rediss://, rediss+sentinel:// or rediss+cluster://")
	}
	if (u.Scheme == "memory") != (u.Host == "") {
		return "", errors.New("memory:// takes no host, and the others need one")
	}
	return s, nil
}

// hasPassword reports whether a password stands in the URL itself.
func (s Store) hasPassword() bool {
	u, err := url.Parse(s.URL)
	if err != nil {
		return false
	}
	_, written := u.User.Password()
	for option := range u.Query() {
		written = written || strings.Contains(option, "password")
	}
	return written
}
