// Package store is what guests share: buckets, leases, claims, values and
// usage. Store is the seam: engines such as memory stand below it and pass one
// conformance suite, storetest.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors. An engine wraps its own detail around ErrUnavailable; that text
// goes to logs only.
var (
	ErrUnavailable = errors.New("store unavailable")
	ErrBadNumber   = errors.New("number out of range")
	ErrMalformed   = errors.New("malformed request")
	ErrNoUser      = errors.New("store: owner without a user id")
	ErrUnknownID   = errors.New("no such reservation")
	ErrFenced      = errors.New("claim lost")
	// ErrIncomplete comes with what could be read of many, and says what could not.
	ErrIncomplete = errors.New("incomplete")
	// ErrOnlyThis comes with ErrUnavailable where the store answers and cannot do
	// this one thing: that says nothing of others.
	ErrOnlyThis = errors.New("this one operation")
	// ErrInTheWay is the ErrOnlyThis of a key that is not the store's own.
	ErrInTheWay = fmt.Errorf("%w: a key of another program is in the way", ErrOnlyThis)
)

// IsAway reports whether a call got no answer that counts: the store was not
// there, or not in time.
func IsAway(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Store is shared state behind one interface. Every mutating operation
// carries an id made by the host: doing it twice with one id does it once.
// Methods may be called by many goroutines at once.
type Store interface {
	// Admit does all of the items or none of them.
	Admit(ctx context.Context, a Admission) (Decision, error)
	// Settle replaces what an open reservation charged by what was used, once:
	// below zero is allowed, above the burst is not. Repeating it changes
	// nothing. Settling with 0 gives the reservation back. An id that is not
	// open is ErrUnknownID.
	Settle(ctx context.Context, r Reservation, actual int64) (balance int64, err error)
	// Balance reads a bucket without changing it.
	Balance(ctx context.Context, owner Owner, limit string, b Bucket) (int64, error)
	// Refill makes buckets full, by forgetting them. Open reservations stay.
	Refill(ctx context.Context, owner Owner, limits ...string) error

	// Renew prolongs leases; the result says which were still held. A lease
	// that lapsed stays lapsed.
	Renew(ctx context.Context, leases []Lease) ([]bool, error)
	// Free gives a lease back and reports whether it was held.
	Free(ctx context.Context, l Lease) (held bool, err error)
	// Held counts the live leases.
	Held(ctx context.Context, owner Owner, limit string) (int64, error)

	Claims
	Values
	Usage
	Overrides
	Averages

	Close(ctx context.Context) error
}

// Remembered is how long the repetition of an operation is recognised, at
// least: an admission, a settlement, an addition to a counter, a claim that was
// given back.
const Remembered = time.Minute

// Owner says whose a limit, a claim or a value is. Ids are any bytes; engines
// escape them.
type Owner struct {
	Kind   OwnerKind
	App    string // unless OwnerGlobal
	User   string // with OwnerUser
	Shadow string // the stage in shadow whose own key space this is; empty for the real one
}

// OwnerKind is how wide a limit is.
type OwnerKind uint8

// The kinds.
const (
	OwnerUser OwnerKind = 1 + iota
	OwnerApp
	OwnerGlobal
)

// Bucket is a token bucket: Units come back every Per, up to Burst. Per is
// whole milliseconds. Units x Per, reduced to lowest terms, is at most 2^53
// and Burst at most MaxUnits.
type Bucket struct {
	Units int64
	Per   time.Duration
	Burst int64
}

// MaxUnits bounds bursts, costs and debts.
const MaxUnits = 1e15

// Cap is a bound on what goes on at once. A lease that is not renewed lapses
// after Expires.
type Cap struct {
	Max     int64
	Expires time.Duration
}

// Admission asks for several things of one owner at once.
type Admission struct {
	ID    string // of the whole; the items' reservations carry it too
	Owner Owner
	Items []Item
}

// Item is one thing that an admission asks for: exactly one of Take, Room and
// Acquire is set.
type Item struct {
	Limit   string
	Take    *Take
	Room    *Room
	Acquire *Acquire
}

// Take charges a bucket.
type Take struct {
	Bucket  Bucket
	Cost    int64 // 0 looks and charges nothing; it may be reserved, for an estimate of zero
	MaxWait time.Duration
	// Reserve keeps the charge open for Settle that long. After it the charge
	// stands as it is. 0 charges for good.
	Reserve time.Duration
}

// Room demands that a bucket holds this much, and charges nothing.
type Room struct {
	Bucket Bucket
	Cost   int64
}

// Acquire takes a lease for a member. A member that holds one keeps it.
type Acquire struct {
	Cap    Cap
	Member string
}

// Decision is the outcome of an admission.
type Decision struct {
	Kind    Kind
	Item    int           // the item that decided, unless Kind is Now
	Wait    time.Duration // with Later until the charge may be used, with Refused until it would be granted; whole milliseconds
	Balance int64         // of the deciding bucket, or of the last one that was charged
}

// Kind is how an admission went.
type Kind uint8

// The kinds. Refused and Never charge nothing.
const (
	Now Kind = 1 + iota
	Later
	Refused
	Never // ceil((cost - burst) / rate) is over the longest wait: no wait helps
)

// Reservation names an open charge.
type Reservation struct {
	ID     string // of the admission
	Owner  Owner
	Limit  string
	Bucket Bucket
}

// Lease names a lease that a member holds.
type Lease struct {
	Owner  Owner
	Limit  string
	Member string
	Cap    Cap
}

// Claims let one of many do something once.
type Claims interface {
	// Claim takes the key for ttl, or says who has it, or what came of it.
	Claim(ctx context.Context, k ClaimKey, holder string, ttl time.Duration) (Claim, error)
	// RenewClaim prolongs a claim, or fails with ErrFenced.
	RenewClaim(ctx context.Context, k ClaimKey, token int64, ttl time.Duration) error
	// EndClaim completes a claim with its result, kept for retention, or gives
	// it back when result is nil. A claim with another token is ErrFenced.
	EndClaim(ctx context.Context, k ClaimKey, token int64, result []byte, retention time.Duration) error
	// ClaimResult reads what a completed claim came to.
	ClaimResult(ctx context.Context, k ClaimKey) (result []byte, done bool, err error)
}

// ClaimKey names a claim.
type ClaimKey struct {
	Owner Owner
	Name  string
	Key   string
}

// Claim is the state of a key after Claim. The holder of a key that claims it
// again keeps it, with the token that it has.
type Claim struct {
	State  ClaimState
	Token  int64  // with Claimed: grows with each claim of the key, never restarts
	Holder string // with HeldElsewhere
	Result []byte // with Completed
}

// ClaimState says whose a key is.
type ClaimState uint8

// The states.
const (
	Claimed ClaimState = 1 + iota
	HeldElsewhere
	Completed
)

// Values are small values with an expiry.
type Values interface {
	GetValue(ctx context.Context, k ValueKey) (value []byte, found bool, err error)
	PutValue(ctx context.Context, k ValueKey, value []byte, ttl time.Duration) error
}

// ValueKey names a value.
type ValueKey struct {
	Owner Owner
	Name  string
	Key   string
}

// Usage keeps what was spent.
type Usage interface {
	// Record keeps one record. A second one with the same ID changes nothing
	// and reports false.
	Record(ctx context.Context, r Record) (fresh bool, err error)
	// Records gives the records of an owner, the oldest first. With OwnerApp
	// it gives those of all the app's users, with OwnerGlobal all. With
	// ErrIncomplete some of them are missing.
	Records(ctx context.Context, owner Owner) ([]Record, error)
	// AddCounter adds to a counter of the owner; id is the operation's.
	AddCounter(ctx context.Context, owner Owner, name, id string, delta int64) (int64, error)
	// Counter reads a counter.
	Counter(ctx context.Context, owner Owner, name string) (int64, error)
	// Activity gives what the users of an owner did, of those with a record since
	// then. What is older than ActivityKept is forgotten. With ErrIncomplete some
	// of the users are missing.
	Activity(ctx context.Context, owner Owner, since time.Time) ([]Activity, error)
}

// ActivityKept is how long what users did is kept, in whole UTC days: at
// least.
const ActivityKept = 8 * 24 * time.Hour

// Activity is what one user did, minute by minute of the records' times. The
// histograms are of the minutes in which there was something to count.
type Activity struct {
	App, User string
	Plan      string // of the newest record
	Turns     Histogram
	Tokens    Histogram
	Last      Minute // the newest with a record
}

// Compare orders by app and user.
func (a Activity) Compare(b Activity) int {
	return cmp.Or(strings.Compare(a.App, b.App), strings.Compare(a.User, b.User))
}

// Minute is what one user did in a minute.
type Minute struct {
	Start  time.Time
	Turns  int64
	Tokens int64
}

// Record is one model call.
type Record struct {
	ID             string // the operation's
	Run            string
	Time           time.Time
	App, User      string
	Session        string
	Agent, Model   string
	Plan           string
	IdempotencyKey string
	Turn           bool   // the first record of its run
	Outcome        string // abi.Reason by its name
	Tokens         Tokens
	Elapsed        time.Duration
	FirstChunk     time.Duration // 0 if none came
}

// Tokens are the numbers of a model call; nil is missing, which is not zero.
type Tokens struct {
	Prompt     *int64 `json:"prompt,omitempty"` // the cached ones included
	Candidates *int64 `json:"candidates,omitempty"`
	Cached     *int64 `json:"cached,omitempty"`
	Thoughts   *int64 `json:"thoughts,omitempty"`
	ToolUse    *int64 `json:"tool_use,omitempty"`
	Total      *int64 `json:"total,omitempty"`
}

// Fresh is the part of the prompt that was not cached, and never below 0; nil
// where one of the two is missing.
func (t Tokens) Fresh() *int64 {
	if t.Prompt == nil || t.Cached == nil {
		return nil
	}
	fresh := max(*t.Prompt-*t.Cached, 0)
	return &fresh
}

// Spent is what a call is charged with: the total or, where that is missing,
// what is known of its parts.
func (t Tokens) Spent() int64 {
	if t.Total != nil {
		return *t.Total
	}
	var sum int64
	for _, n := range []*int64{t.Prompt, t.Candidates, t.Thoughts, t.ToolUse} {
		if n != nil {
			sum += *n
		}
	}
	return sum
}

// Of reports whether a record is the owner's.
func (r Record) Of(o Owner) bool {
	return o.Kind == OwnerGlobal || o.App == r.App && (o.Kind == OwnerApp || o.User == r.User)
}

// Clone makes a copy that shares no number with the original.
func (t Tokens) Clone() Tokens {
	for _, n := range []**int64{&t.Prompt, &t.Candidates, &t.Cached, &t.Thoughts, &t.ToolUse, &t.Total} {
		if *n != nil {
			count := **n
			*n = &count
		}
	}
	return t
}

// Overrides are the plans that operators gave to users while hosts run.
type Overrides interface {
	// SetOverride puts a user on a plan. An empty plan takes that back.
	SetOverride(ctx context.Context, o Override) error
	// Overrides gives what changed since the revision of an earlier call, the
	// oldest first; a user whose override was taken back has no plan. An empty
	// revision, and one that the store does not know, gives all that stand.
	Overrides(ctx context.Context, since string) (OverrideChanges, error)
}

// Override puts one user on another plan.
type Override struct {
	App    string // in this app; empty is in all
	User   string
	Plan   string
	Author string
	Note   string
	Until  time.Time // zero is for ever; who reads it judges
}

// OverrideChanges is what a store knows of overrides since a revision.
type OverrideChanges struct {
	Revision string
	Whole    bool // these are all that stand, in place of what was known
	Changed  []Override
}

// Averages are moving averages of what calls use, which all hosts share.
type Averages interface {
	// Learn adds what calls used and gives the averages that come of it, in the
	// order of the samples: 0 where nothing is known. A sample of no calls only
	// reads. id is the operation's. Of samples of one app all are learned or none:
	// after ErrInTheWay, none.
	Learn(ctx context.Context, id string, samples []Sample) ([]int64, error)
}

// Sample is what some calls of an agent to a model used.
type Sample struct {
	App, Agent, Model string
	Calls             int64 // 0 to 1,000,000
	Units             int64 // of all of them
}

// An average is over about the last AverageOver calls, and forgotten
// AverageLife after the last of them.
const (
	AverageOver = 100
	AverageLife = 31 * 24 * time.Hour
)
