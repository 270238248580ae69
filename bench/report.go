package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// figure is one thing that was measured, ours beside a peer in each round.
type figure struct {
	Name     string    `json:"name"`
	Unit     string    `json:"unit"`
	Ours     float64   `json:"ours"` // median
	Peer     float64   `json:"peer"` // median
	PeerName string    `json:"peer_name,omitempty"`
	Judged   float64   `json:"judged"`    // median over the rounds
	JudgedAs string    `json:"judged_as"` // how a round's figure comes of ours and the peer's
	Goal     string    `json:"goal,omitempty"`
	Met      *bool     `json:"met,omitempty"`
	Aim      float64   `json:"aim,omitempty"` // what would be better still, as a bound like the goal's
	OursRaw  []float64 `json:"ours_rounds"`
	PeerRaw  []float64 `json:"peer_rounds,omitempty"`
}

// rounds are what was measured in turns.
type rounds struct{ ours, peer []float64 }

// judge makes a figure, with what is judged in each round.
func (r rounds) judge(name, unit, peer, as string, of func(ours, peer float64) float64) figure {
	judged := make([]float64, len(r.ours))
	for i := range r.ours {
		judged[i] = of(r.ours[i], r.peer[i])
	}
	return figure{
		Name: name, Unit: unit, Ours: median(r.ours), Peer: median(r.peer), PeerName: peer,
		Judged: median(judged), JudgedAs: as, OursRaw: r.ours, PeerRaw: r.peer,
	}
}

// ratio judges ours / peer.
func (r rounds) ratio(name, unit, peer string) figure {
	return r.judge(name, unit, peer, "ours / peer", func(ours, peer float64) float64 { return ours / peer })
}

// alone judges what has no peer.
func alone(name, unit string, ours []float64) figure {
	return figure{Name: name, Unit: unit, Ours: median(ours), Judged: median(ours), JudgedAs: "ours", OursRaw: ours}
}

func (f figure) atMost(goal float64) figure {
	return f.want(fmt.Sprintf("<= %g", goal), f.Judged <= goal)
}

func (f figure) atLeast(goal float64) figure {
	return f.want(fmt.Sprintf(">= %g", goal), f.Judged >= goal)
}

// aim names an upper bound that is better than the goal, or for what has no
// goal. Nothing fails where it is missed.
func (f figure) aim(bound float64) figure {
	f.Aim = bound
	return f
}

func (f figure) want(goal string, met bool) figure {
	f.Goal, f.Met = goal, &met
	return f
}

func (f figure) missed() bool { return f.Met != nil && !*f.Met }

func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func report(w io.Writer, all []figure, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(all)
	}
	return table(w, all)
}

func table(w io.Writer, all []figure) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tUNIT\tOURS\tPEER\tJUDGED\tGOAL\t")
	for _, f := range all {
		peer := "-"
		if f.PeerName != "" {
			peer = number(f.Peer) + " " + f.PeerName
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s = %s\t%s\t\n", f.Name, f.Unit, number(f.Ours), peer, f.JudgedAs, number(f.Judged), f.goal())
	}
	return t.Flush()
}

// goal says what was wanted, and whether it is so.
func (f figure) goal() string {
	var said []string
	switch {
	case f.missed():
		said = append(said, f.Goal+" MISSED")
	case f.Met != nil:
		said = append(said, f.Goal+" met")
	}
	if f.Aim > 0 {
		reached := "not reached"
		if f.Judged <= f.Aim {
			reached = "reached"
		}
		said = append(said, fmt.Sprintf("aim %g %s", f.Aim, reached))
	}
	if said == nil {
		return "none"
	}
	return strings.Join(said, ", ")
}

// number gives three digits, or all of a whole part that has more.
func number(n float64) string {
	if n >= 100 || n <= -100 {
		return fmt.Sprintf("%.0f", n)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.3g", n), ".0")
}
