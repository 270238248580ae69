package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// connect makes the client that a URL describes. It does not dial yet.
func connect(c Config) (goredis.UniversalClient, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Fragment != "" {
		// The parser's own text may quote what is a password.
		return nil, errors.New("redis: url: not a URL; write special characters of a password as %XX, or set password")
	}
	scheme, kind, _ := strings.Cut(u.Scheme, "+")
	if scheme != "redis" && scheme != "rediss" {
		return nil, fmt.Errorf("redis: url: scheme %q: want redis, rediss, redis+sentinel, rediss+sentinel, redis+cluster or rediss+cluster", u.Scheme)
	}
	u.Scheme = scheme
	secrets, err := tlsFiles(c, scheme == "rediss")
	if err != nil {
		return nil, err
	}
	switch kind {
	case "":
		o, err := goredis.ParseURL(u.String())
		if err != nil {
			return nil, badURL(u, err)
		}
		secrets.apply(o.TLSConfig)
		return goredis.NewClient(single(o, c)), nil
	case "sentinel":
		o, err := goredis.ParseFailoverURL(u.String())
		if err != nil {
			return nil, badURL(u, err)
		}
		if o.MasterName == "" {
			return nil, errors.New("redis: url: a sentinel URL needs ?master_name=")
		}
		secrets.apply(o.TLSConfig)
		return goredis.NewFailoverClient(failover(o, c)), nil
	case "cluster":
		o, err := goredis.ParseClusterURL(u.String())
		if err != nil {
			return nil, badURL(u, err)
		}
		secrets.apply(o.TLSConfig)
		return goredis.NewClusterClient(cluster(o, c)), nil
	}
	return nil, fmt.Errorf("redis: url: scheme %q: want +sentinel or +cluster, or nothing", scheme+"+"+kind)
}

// badURL quotes what is wrong with a URL, unless it could be part of a
// password that was not escaped.
func badURL(u *url.URL, err error) error {
	if strings.Contains(u.Path+u.RawQuery, "@") {
		return errors.New("redis: url: not a URL of a server; write special characters of a password as %XX, or set password")
	}
	return fmt.Errorf("redis: url: %s", strings.TrimPrefix(err.Error(), "redis: "))
}

// What holds for every kind of client: the driver repeats nothing, the context
// is the deadline, and no command is sent that the ACL would have to allow.

func single(o *goredis.Options, c Config) *goredis.Options {
	o.Protocol, o.MaxRetries, o.DialerRetries = 2, -1, 1
	o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = true, c.Timeout, c.Timeout, c.Timeout
	o.DialTimeout, o.DisableIdentity = c.DialTimeout, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if c.Pool > 0 {
		o.PoolSize = c.Pool
	}
	o.Username, o.Password = credentials(c, o.Username, o.Password)
	return o
}

func failover(o *goredis.FailoverOptions, c Config) *goredis.FailoverOptions {
	o.Protocol, o.MaxRetries, o.DialerRetries = 2, -1, 1
	o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = true, c.Timeout, c.Timeout, c.Timeout
	o.DialTimeout, o.DisableIdentity = c.DialTimeout, true
	o.ReplicaOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	if c.Pool > 0 {
		o.PoolSize = c.Pool
	}
	o.Username, o.Password = credentials(c, o.Username, o.Password)
	return o
}

func cluster(o *goredis.ClusterOptions, c Config) *goredis.ClusterOptions {
	o.Protocol, o.MaxRetries, o.DialerRetries = 2, -1, 1
	o.ContextTimeoutEnabled, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = true, c.Timeout, c.Timeout, c.Timeout
	o.DialTimeout, o.DisableIdentity = c.DialTimeout, true
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly, o.DisableRoutingPolicies = false, false, false, true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if o.MaxRedirects <= 0 {
		o.MaxRedirects = 3 // of slots that moved, after which nothing ran
	}
	if c.Pool > 0 {
		o.PoolSize = c.Pool
	}
	o.Username, o.Password = credentials(c, o.Username, o.Password)
	return o
}

func credentials(c Config, username, password string) (string, string) {
	if c.Username != "" {
		username = c.Username
	}
	if c.Password != "" {
		password = c.Password
	}
	return username, password
}

// tlsSecrets are what the PEM files hold.
type tlsSecrets struct {
	roots *x509.CertPool
	certs []tls.Certificate
}

func tlsFiles(c Config, secure bool) (t tlsSecrets, err error) {
	if !secure {
		if c.CA != "" || c.Cert != "" || c.Key != "" {
			return t, errors.New("redis: ca, cert and key need TLS: use rediss:// in url")
		}
		return t, nil
	}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return t, fmt.Errorf("redis: ca: %w", err)
		}
		t.roots = x509.NewCertPool()
		if !t.roots.AppendCertsFromPEM(pem) {
			return t, fmt.Errorf("redis: ca: %s holds no certificate in PEM", c.CA)
		}
	}
	if (c.Cert == "") != (c.Key == "") {
		return t, errors.New("redis: cert and key go together")
	}
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return t, fmt.Errorf("redis: cert, key: %w", err)
		}
		t.certs = []tls.Certificate{pair}
	}
	return t, nil
}

func (t tlsSecrets) apply(o *tls.Config) {
	if o != nil {
		o.RootCAs, o.Certificates, o.MinVersion = t.roots, t.certs, tls.VersionTLS12
	}
}
