package manifest

import "errors"

// Estimate is what one call takes until its cost is known. The zero value
// leaves it to the guest.
type Estimate struct {
	By    EstimateBy
	Units int64 // the estimate itself, or what goes with By
}

// EstimateBy is how an estimate is come by.
type EstimateBy uint8

// The ways.
const (
	EstimateFixed   EstimateBy = iota // Units
	EstimateSize                      // the size of the request, and Units for the answer
	EstimateLearned                   // what calls of the same agent to the same model used, on average; Units while that is not known
)

var estimateByNames = map[EstimateBy]string{EstimateFixed: "fixed", EstimateSize: "size", EstimateLearned: "learned"}

func (by EstimateBy) String() string { return estimateByNames[by] }

var asOutput = asInt(0, 1e15)

// readEstimate reads a number of units, or a table that says how to come by
// one.
func readEstimate(t *table) Estimate {
	if !t.has("estimate") || !t.isTable("estimate") {
		return Estimate{Units: read(t, "estimate", 0, asFixedEstimate)}
	}
	e := t.sub("estimate")
	defer e.close()
	switch by := need(e, "by", `want "size" or "learned"`, asEstimateBy); by {
	case EstimateSize:
		return Estimate{by, need(e, "output", "write what is added to the request's size for the answer", asOutput)}
	case EstimateLearned:
		return Estimate{by, need(e, "initial", "write what a call takes while nothing is known", asUnits)}
	default: // blamed already
		e.known = append(e.known, "output", "initial")
		return Estimate{}
	}
}

func asEstimateBy(v any) (EstimateBy, error) {
	switch v {
	case "size":
		return EstimateSize, nil
	case "learned":
		return EstimateLearned, nil
	}
	return 0, errors.New(`want "size" or "learned"; a fixed one is a number: estimate = 6000`)
}

func asFixedEstimate(v any) (int64, error) {
	if _, is := v.(int64); !is {
		return 0, mismatch(`a whole number from 1 to 1000000000000000, { by = "size", output = N } or { by = "learned", initial = N }`, v)
	}
	return asUnits(v)
}
