package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/hookhost/hookhost/abi"
)

// tail is the end of a stream that a stage could not judge yet.
type tail struct {
	kind abi.LeafKind
	text string
}

// chunk runs on_model_chunk. Once a stage failed closed in the stream, what
// it let pass before stays, and nothing more goes out.
func (op *Op) chunk(ctx context.Context, ev *abi.Event) Outcome {
	p := pass{op: op, ev: ev, value: ev.Subject}
	p.run(ctx)
	out := p.outcome()
	out.Hold = op.latched() != nil
	return out
}

// latchOn keeps the first failure that closed the stream.
func (op *Op) latchOn(d Denial) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.latch == nil {
		op.latch = &d
	}
}

// withTail puts what the stage held back in front of the chunk: into its
// first text of the same kind, or where the kind changed as a part of its own
// that nothing can follow. A chunk without any text leaves the tail where it
// is, until the stream ends.
func (op *Op) withTail(e *entry, ev *abi.Event) abi.Subject {
	op.mu.Lock()
	held, there := op.tails[e.index]
	op.mu.Unlock()
	if !there || ev.Subject == nil {
		return ev.Subject
	}
	edits, ok := held.before(ev)
	if !ok {
		return ev.Subject
	}
	joined, err := ev.Subject.Apply(edits)
	if err != nil {
		return ev.Subject
	}
	op.mu.Lock()
	delete(op.tails, e.index)
	op.mu.Unlock()
	return joined
}

// before is the edit that puts the tail in front of a chunk.
func (t tail) before(ev *abi.Event) ([]abi.Edit, bool) {
	leaves := ev.Subject.Leaves()
	for _, leaf := range leaves {
		if leaf.Kind == t.kind {
			return []abi.Edit{{Op: abi.EditSplice, Pointer: leaf.Pointer, Text: t.text}}, true
		}
		if streamed(leaf.Kind) {
			break
		}
	}
	part := partJSON(t)
	if _, err := ev.Subject.Get("/content/parts/0", abi.MaxValue); err == nil {
		return []abi.Edit{{Op: abi.EditAdd, Pointer: "/content/parts/0", Value: part}}, true
	}
	if !ev.Flags.Has(abi.StreamEnd) {
		return nil, false
	}
	content := append(append([]byte(`{"role":"model","parts":[`), part...), `]}`...)
	return []abi.Edit{{Op: abi.EditAdd, Pointer: "/content", Value: content}}, true
}

func partJSON(t tail) []byte {
	part, err := json.Marshal(struct {
		Text    string `json:"text"`
		Thought bool   `json:"thought,omitempty"`
	}{t.text, t.kind == abi.LeafThought})
	if err != nil {
		panic(err) // a string and a bool always encode
	}
	return part
}

func streamed(k abi.LeafKind) bool { return k == abi.LeafText || k == abi.LeafThought }

// cutTail applies the verdict on a chunk and keeps back what the stage cannot
// judge.
func (op *Op) cutTail(e *entry, ev *abi.Event, v abi.Verdict, step *Step) (abi.Subject, *Failure) {
	if ev.Subject == nil {
		return nil, nil
	}
	var edits []abi.Edit
	if v.Kind == abi.Amend {
		edits = v.Edits
	}
	var kept *tail
	for _, h := range v.Holds {
		cut, t, err := cutOf(ev.Subject, h)
		if err != nil {
			return nil, &Failure{Cause: CauseBadVerdict, Err: err}
		}
		if t != nil && kept != nil {
			return nil, &Failure{Cause: CauseBadVerdict, Err: fmt.Errorf("%w: two holds in one chunk", ErrVerdict)}
		}
		if t != nil {
			kept, edits = t, append(edits[:len(edits):len(edits)], cut)
		}
	}
	next := ev.Subject
	if len(edits) > 0 {
		var err error
		if next, err = ev.Subject.Apply(edits); err != nil {
			return nil, &Failure{Cause: CauseBadVerdict, Err: fmt.Errorf("amend: %w", inOurWords(err))}
		}
	}
	if failure := commit(v); failure != nil {
		return nil, failure
	}
	if kept != nil {
		step.Held = len(kept.text)
		op.mu.Lock()
		if op.tails == nil {
			op.tails = make(map[int]tail)
		}
		op.tails[e.index] = *kept
		op.mu.Unlock()
	}
	return next, nil
}

// cutOf turns a hold into the cut that it makes. The cut never splits a
// rune.
func cutOf(s abi.Subject, h abi.Hold) (abi.Edit, *tail, error) {
	for _, leaf := range s.Leaves() {
		if leaf.Pointer != h.Pointer {
			continue
		}
		if leaf.Final || !streamed(leaf.Kind) {
			return abi.Edit{}, nil, nil // it ends here, so it has to be judged as it is
		}
		if h.Bytes < 0 {
			break
		}
		from := max(len(leaf.Text)-h.Bytes, 0)
		if from == len(leaf.Text) {
			return abi.Edit{}, nil, nil
		}
		for from > 0 && !utf8.RuneStart(leaf.Text[from]) {
			from--
		}
		cut := abi.Edit{Op: abi.EditSplice, Pointer: leaf.Pointer, Start: from, End: len(leaf.Text)}
		return cut, &tail{kind: leaf.Kind, text: leaf.Text[from:]}, nil
	}
	return abi.Edit{}, nil, fmt.Errorf("%w: hold of %d bytes", ErrVerdict, h.Bytes)
}

// release lets a chunk with its tail go on after a failure that is open.
func (p *pass) release(ev *abi.Event) {
	if ev.Subject != p.value {
		p.value, p.changed = ev.Subject, true
	}
}
