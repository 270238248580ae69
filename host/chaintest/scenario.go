package chaintest

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/host/demo"
)

// Scenario is one way through a scenario file: a file that asks for several
// shapes or orders holds one for each.
type Scenario struct {
	File  string
	Name  string // of the file, and of the shape and the order if there are several
	About string

	file  *file
	shape demo.Shape
	order []string // nil for the order of the manifest
	doc   *manifest.Document
}

// file is what stands in a scenario file.
type file struct {
	About         string                    `toml:"about"`
	Manifest      string                    `toml:"manifest"`
	Order         []string                  `toml:"order"`
	Orders        [][]string                `toml:"orders"`
	MaxModelCalls *int64                    `toml:"max_model_calls"`
	Plans         any                       `toml:"plans"`
	Stage         map[string]map[string]any `toml:"stage"`
	Agent         agentTable                `toml:"agent"`
	Reply         []demo.Reply              `toml:"reply"`
	Fault         []fault                   `toml:"fault"`
	Turn          []turn                    `toml:"turn"`
	Expect        expect                    `toml:"expect"`
}

type agentTable struct {
	Shape         demo.Shape   `toml:"shape"`
	Shapes        []demo.Shape `toml:"shapes"`
	Iterations    int          `toml:"iterations"`
	Callbacks     bool         `toml:"callbacks"`
	RepeatReplies bool         `toml:"repeat_replies"`
}

// turn is one message of a user.
type turn struct {
	Where place `toml:"-"`

	User        string         `toml:"user"`
	Session     string         `toml:"session"`
	Text        string         `toml:"text"`
	At          *demo.Duration `toml:"at"`
	After       demo.Duration  `toml:"after"`
	Group       string         `toml:"group"`
	Repeat      int            `toml:"repeat"`
	Stream      bool           `toml:"stream"`
	CancelAfter int            `toml:"cancel_after"`
	StoreDown   bool           `toml:"store_down"`
	Expect      expect         `toml:"expect"`

	number int // from 1
}

// The users and sessions of turns that name none.
const (
	defaultUser    = "user"
	defaultSession = "session"
)

// Load reads a scenario file. All its faults come back at once, as
// *manifest.Errors.
func Load(path string) ([]*Scenario, error) {
	data, err := manifest.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	return Parse(path, data)
}

// Parse is Load for a text at hand. The name is the path that errors show and
// that paths in the text are relative to.
func Parse(name string, data []byte) ([]*Scenario, error) {
	doc, err := manifest.ParseDocument(name, data)
	if err != nil {
		return nil, err
	}
	f := new(file)
	d := &decoder{doc: doc}
	d.decode(nil, doc.Root(), reflect.ValueOf(f).Elem())
	if len(d.faults) == 0 { // what did not decode cannot be judged
		f.check(d)
	}
	if err := manifest.Join(d.faults...); err != nil {
		return nil, err
	}
	return f.variants(doc, name), nil
}

func (f *file) variants(doc *manifest.Document, name string) []*Scenario {
	shapes, orders := f.Agent.Shapes, f.Orders
	if shapes == nil {
		shapes = []demo.Shape{cmp.Or(f.Agent.Shape, demo.LLM)}
	}
	if orders == nil {
		orders = [][]string{f.Order}
	}
	var all []*Scenario
	for _, order := range orders {
		for _, shape := range shapes {
			var which []string
			if len(shapes) > 1 {
				which = append(which, string(shape))
			}
			if len(orders) > 1 {
				which = append(which, strings.Join(order, " "))
			}
			s := &Scenario{File: name, About: f.About, file: f, shape: shape, order: order, doc: doc}
			s.Name = strings.TrimSuffix(filepath.Base(name), ".toml")
			if which != nil {
				s.Name += " (" + strings.Join(which, ", ") + ")"
			}
			all = append(all, s)
		}
	}
	return all
}

// check says what is wrong although it decodes.
func (f *file) check(d *decoder) {
	if len(f.Turn) == 0 {
		d.blame(nil, "no [[turn]]: nothing would happen")
	}
	if f.Order != nil && f.Orders != nil {
		d.blame([]string{"orders"}, "stands beside order: take one of them")
	}
	if f.Agent.Shape != "" && f.Agent.Shapes != nil {
		d.blame([]string{"agent", "shapes"}, "stands beside shape: take one of them")
	}
	if f.Agent.Iterations < 0 {
		d.blame([]string{"agent", "iterations"}, "want a number from 0, which is without end")
	}
	switch f.Plans.(type) {
	case nil, string, map[string]any:
	default:
		d.faults = append(d.faults, d.doc.Mismatch([]string{"plans"}, "the path of a file, or a table", f.Plans))
	}
	for i := range f.Reply {
		if err := f.Reply[i].Check(); err != nil {
			d.blame([]string{"reply", strconv.Itoa(i)}, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	for name, values := range f.Stage {
		f.checkStage(d, name, values)
	}
	for i := range f.Fault {
		f.Fault[i].check(d)
	}
	f.checkTurns(d)
	f.Expect.check(d, true)
	if f.assertsNothing() {
		d.blame(nil, "no expectation: whatever happens would be right")
	}
}

func (f *file) checkTurns(d *decoder) {
	number := 1
	for i := range f.Turn {
		t := &f.Turn[i]
		t.User, t.Session, t.Repeat = cmp.Or(t.User, defaultUser), cmp.Or(t.Session, defaultSession), max(t.Repeat, 1)
		t.number = number
		number += t.Repeat
		if t.Expect.Where == nil {
			t.Expect.Where = t.Where
		}
		t.Expect.check(d, t.Group == "")
		switch {
		case t.Text == "":
			d.blame(t.Where, "no text: a user says something")
		case t.At != nil && t.After != 0:
			d.blame(below(t.Where, "after"), "stands beside at: take one of them")
		case t.Repeat > 1 && t.At != nil:
			d.blame(below(t.Where, "at"), "a repeated turn has no one time: write after")
		case t.Group != "" && t.Repeat > 1:
			d.blame(below(t.Where, "repeat"), "turns of a group stand one by one")
		}
		if t.Group == "" || i == 0 || f.Turn[i-1].Group != t.Group {
			continue
		}
		for _, other := range f.group(i - 1) {
			if other.User == t.User && other.Session == t.Session {
				d.blame(t.Where, "same user and session as another turn of the group: what belongs to which could not be told")
			}
		}
		if t.At != nil || t.After != 0 || t.StoreDown {
			d.blame(t.Where, "the first turn of a group has its time and its store")
		}
	}
}

// group gives the turns of the group up to one of them.
func (f *file) group(last int) []*turn {
	var all []*turn
	for i := last; i >= 0 && f.Turn[i].Group == f.Turn[last].Group; i-- {
		all = append(all, &f.Turn[i])
	}
	return all
}

func (f *file) assertsNothing() bool {
	return f.Expect.empty() && !slices.ContainsFunc(f.Turn, func(t turn) bool { return !t.Expect.empty() })
}

// hookName is a hook as scenario files write it.
type hookName struct{ abi.Hook }

func (h *hookName) UnmarshalText(text []byte) error {
	hook, ok := abi.ParseHook(string(text))
	if !ok {
		return fmt.Errorf("%q is no hook", text)
	}
	h.Hook = hook
	return nil
}

func (t *turn) start() time.Time {
	if t.At == nil {
		return time.Time{}
	}
	return Start.Add(time.Duration(*t.At))
}
