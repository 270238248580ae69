package chain

import (
	"fmt"
	"strings"
)

var (
	roleNames   = []string{Observer: "observer", Transformer: "transformer", Responder: "responder"}
	modeNames   = []string{Enforce: "enforce", Shadow: "shadow", Off: "off"}
	policyNames = []string{Open: "open", Closed: "closed", Local: "local"}
	causeNames  = []string{
		CauseTrap: "trap", CauseDeadline: "deadline", CauseMemory: "memory", CauseBadVerdict: "bad_verdict",
		CausePoolFull: "pool_full", CauseFail: "fail", CauseLoad: "load", CauseStore: "store", CauseCancelled: "cancelled",
		CauseDepth: "too_deep", CauseHostCalls: "host_calls",
	}
)

func name(names []string, i uint8) string {
	if int(i) >= len(names) || names[i] == "" {
		return "?"
	}
	return names[i]
}

func parse[E ~uint8](names []string, what string, text []byte, into *E) error {
	for i, n := range names {
		if n != "" && n == string(text) {
			*into = E(i)
			return nil
		}
	}
	return fmt.Errorf("unknown %s %q: want %s", what, text, strings.Join(names[1:], ", "))
}

func (r Role) String() string   { return name(roleNames, uint8(r)) }
func (m Mode) String() string   { return name(modeNames, uint8(m)) }
func (p Policy) String() string { return name(policyNames, uint8(p)) }
func (c Cause) String() string  { return name(causeNames, uint8(c)) }

// UnmarshalText reads a role by its name.
func (r *Role) UnmarshalText(text []byte) error { return parse(roleNames, "role", text, r) }

// UnmarshalText reads a mode by its name.
func (m *Mode) UnmarshalText(text []byte) error { return parse(modeNames, "mode", text, m) }

// UnmarshalText reads a policy by its name.
func (p *Policy) UnmarshalText(text []byte) error { return parse(policyNames, "policy", text, p) }
