package meter

// plan is what a function takes when it is entered, or leaves to those that
// call it.
type plan struct {
	charged bool   // takes the fuel of its entry region
	deep    bool   // takes its frame of the depth
	owed    uint32 // fuel that its callers take for it
	shallow uint32 // depth that it and what it calls take at most, if not deep
	state   planState
}

type planState uint8

const (
	unplanned planState = iota
	planning
	planned
)

// What a function may leave to its callers at most. On no path of direct calls
// that comes back to its beginning do all functions leave their charge to
// others, and those that call through a table never do.
const (
	maxOwed    = 64 // fuel
	maxShallow = 64 // depth
	maxDown    = 1000
)

// decide plans all functions.
func (m *module) decide() {
	for i := range m.functions {
		if i < int(m.imports.functions) {
			m.functions[i].state = planned
			continue
		}
		m.decideFunction(i, 0)
	}
}

// decideFunction plans one, after those that it calls. Those that are being
// planned, or too far down to be, take their charges themselves.
func (m *module) decideFunction(i, down int) {
	f := &m.functions[i]
	if f.state != unplanned {
		return
	}
	f.state = planning
	below, calls := uint32(0), false // depth of what it calls; whether that may be any
	for _, e := range m.edits[f.edits[0]:f.edits[1]] {
		if e.kind != editCall && e.kind != editReturnCall || e.a < m.imports.functions {
			continue
		}
		callee := &m.functions[e.a]
		if down < maxDown {
			m.decideFunction(int(e.a), down+1)
		}
		if callee.state != planned {
			callee.charged, callee.deep = true, true
		}
		for region := e.region; region != 0 && callee.owed > 0; region = m.around[region] {
			m.regions[region] += callee.owed
		}
		below = max(below, callee.shallow)
		calls = calls || callee.deep
	}
	entry := m.regions[f.entry]
	f.charged = f.charged || f.indirect || entry > maxOwed
	f.deep = f.deep || f.indirect || calls || f.frame+below > maxShallow
	f.deep = f.deep && !m.omit.depth
	if !f.charged {
		f.owed = entry
	}
	if !f.deep {
		f.shallow = f.frame + below
	}
	if f.charged && f.first != 0 {
		// The charge of the loop stands for that of the entry.
		m.regions[f.first] = max(m.regions[f.first], entry)
		f.charged = false
	}
	f.state = planned
}
