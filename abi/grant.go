package abi

import "strings"

// A grant is what the manifest allows a stage beyond what every stage has:
//
//	session:read, session:write, actions     roots for get and edit
//	usage:read, usage:write
//	limit:NAME[:app|:global]
//	kv:NAME, claim:NAME, secret:NAME
//
// NAME matches [a-z0-9_-]{1,64}.

// Grant is one parsed grant.
type Grant struct {
	Family string // session, actions, usage, limit, kv, claim or secret
	Name   string // or the mode: read, write
	Scope  string // of a limit: empty for the user's, app or global
}

func (g Grant) String() string {
	s := g.Family
	if g.Name != "" {
		s += ":" + g.Name
	}
	if g.Scope != "" {
		s += ":" + g.Scope
	}
	return s
}

// Changes reports whether the grant lets a stage change anything but usage,
// which no observer may.
func (g Grant) Changes() bool {
	switch g.Family {
	case "usage", "secret":
		return false
	case "session":
		return g.Name == "write"
	}
	return true
}

// ParseGrant reads a grant. It reports false for what is not one.
func ParseGrant(s string) (Grant, bool) {
	family, rest, named := strings.Cut(s, ":")
	g := Grant{Family: family}
	switch family {
	case "actions":
		return g, !named
	case "session", "usage":
		g.Name = rest
		return g, rest == "read" || rest == "write"
	case "limit":
		g.Name, g.Scope, named = strings.Cut(rest, ":")
		if named && g.Scope != "app" && g.Scope != "global" {
			return g, false
		}
		return g, ValidName(g.Name)
	case "kv", "claim", "secret":
		g.Name = rest
		return g, ValidName(rest)
	}
	return g, false
}

// ValidName reports whether s can name a stage, a limit, a plan or anything
// else in a manifest.
func ValidName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
