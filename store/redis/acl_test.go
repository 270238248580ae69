package redis

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

//go:embed README.md
var readme string

// documentedACL is the user of the README, with what a Cluster needs.
func documentedACL(t *testing.T) (user, cluster []string) {
	t.Helper()
	lines := regexp.MustCompile(`(?m)^(user hookhost .*|\+cluster.*)$`).FindAllString(readme, -1)
	require.Len(t, lines, 2)
	fill := strings.NewReplacer("PASSWORD", "secret", "NAMESPACE", "test")
	return strings.Fields(fill.Replace(lines[0]))[2:], strings.Fields(lines[1])
}

func setUser(t *testing.T, server *redistest.Server, rules []string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", "hookhost", "reset"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	server.Do(t, args...)
}

func TestACLTheDocumentedUserCanDoAllAndNothingInItIsSpare(t *testing.T) {
	server := redistest.Single(t)
	rules, _ := documentedACL(t)
	hookhost := login("hookhost", "secret")
	setUser(t, server, rules)
	s := opened(t, "redis://"+server.Addr, hookhost)
	succeed(t, s, ann)
	server.Do(t, "SCRIPT", "FLUSH")
	succeed(t, s, store.Owner{Kind: store.OwnerUser, App: "shop", User: "bob"})
	assert.ErrorContains(t, s.client.Get(ctx, "other:key").Err(), "NOPERM")

	for i, rule := range rules {
		if !strings.HasPrefix(rule, "+") && !strings.HasPrefix(rule, "~") {
			continue
		}
		server.Do(t, "FLUSHALL")
		server.Do(t, "SCRIPT", "FLUSH")
		setUser(t, server, slices.Delete(slices.Clone(rules), i, i+1))
		s, err := Open(ctx, Config{URL: "redis://" + server.Addr, Namespace: "test", Timeout: patient, Username: "hookhost", Password: "secret", Log: quiet()})
		for _, op := range longOperations(s, err) {
			if err == nil {
				_, err = op.do()
			}
		}
		assert.ErrorIs(t, err, store.ErrUnavailable, "without %s", rule)
		assert.ErrorContains(t, err, "see the ACL in store/redis/README.md", "without %s", rule)
		if s != nil {
			require.NoError(t, s.Close(ctx))
		}
	}
}

// longOperations are all operations, and enough of them for all that the
// scripts do in time: records that give way to newer ones, and a second minute.
func longOperations(s *Store, err error) []operation {
	if err != nil {
		return nil
	}
	first, second := operations(s, ann), operations(s, ann)
	return append(first, append(second, operation{name: "many records", do: func() (any, error) { return nil, fillRecords(s) }})...)
}

// theDocumentedUserSuffices is the same on a cluster.
func theDocumentedUserSuffices(t *testing.T, cluster *redistest.Shards) {
	rules, more := documentedACL(t)
	for _, node := range cluster.Nodes {
		setUser(t, node, append(slices.Clone(rules), more...))
	}
	succeed(t, opened(t, cluster.URL(), login("hookhost", "secret")), store.Owner{Kind: store.OwnerUser, App: "shop", User: "acl"})

	for _, node := range cluster.Nodes {
		setUser(t, node, rules)
	}
	assert.ErrorIs(t, refusal(t, cluster.URL(), login("hookhost", "secret")), store.ErrUnavailable)
}
