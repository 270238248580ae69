package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// print shows it to a person. The names in a module are anybody's.
func (i *inspection) print(w io.Writer) {
	say := func(format string, values ...any) {
		fmt.Fprintln(w, strings.TrimRight(visible(fmt.Sprintf(format, values...)), " "))
	}
	say("%s, %s", i.File, size(uint64(i.Size)))
	say("  sha256   %s", i.SHA256)
	if made := i.Origin.String(); made != "" {
		say("  made by  %s", made)
	}
	say("  abi      %s", map[bool]string{true: fmt.Sprint(i.ABI), false: "none that this host knows"}[i.ABI != 0])
	if len(i.Hooks) > 0 {
		say("  hooks    %s", strings.Join(i.Hooks, ", "))
	}
	say("  memory   %s", i.Memory)
	say("imports")
	i.sayImports(say)
	if len(i.Trial) > 0 {
		say("runs once at each hook")
	}
	for _, l := range i.Trial {
		say("  %-15s %-9s %7.2f ms %10d fuel  %s", l.Hook, l.Verdict, l.TookMS, l.Fuel, l.Detail)
	}
	if len(i.Unheld) > 0 {
		say("keeps state that no reset puts back")
	}
	for _, use := range i.Unheld {
		say("  %s", use)
	}
	if i.Problem != "" && len(i.Stages) == 0 {
		say("%s", map[bool]string{true: "no host takes it", false: "does not start without a manifest"}[i.hopeless])
		fmt.Fprintln(w, " ", indented(i.Problem))
	}
	for _, s := range i.Stages {
		s.print(w, say)
	}
	fmt.Fprintf(w, "\n%s", visibleLines(i.Paste))
}

// sayImports puts those of one module on a line, with the grants that they
// need.
func (i *inspection) sayImports(say func(string, ...any)) {
	var modules []string
	names, grants := map[string][]string{}, map[string][]string{}
	for _, imported := range i.Imports {
		dot := strings.LastIndexByte(imported.Name, '.')
		module, name := imported.Name[:dot], imported.Name[dot+1:]
		if names[module] == nil {
			modules = append(modules, module)
		}
		names[module] = append(names[module], name)
		if imported.Grant != "" && !slices.Contains(grants[module], imported.Grant) {
			grants[module] = append(grants[module], imported.Grant)
		}
	}
	for _, module := range modules {
		needs := ""
		if len(grants[module]) > 0 {
			needs = ": needs " + strings.Join(grants[module], ", ")
		}
		say("  %s%s", module, needs)
		say("    %s", strings.Join(names[module], ", "))
	}
	if len(modules) == 0 {
		say("  none")
	}
}

func (s *inspectedStage) print(w io.Writer, say func(string, ...any)) {
	grants := "no grants"
	if len(s.Grants) > 0 {
		grants = strings.Join(s.Grants, ", ")
	}
	say("stage[%s], %s, %s, %s", s.Stage, s.Role, s.Mode, grants)
	switch {
	case s.Refused != nil:
		say("  refused")
		report(w, s.Refused)
	case s.Skipped != "":
		fmt.Fprintln(w, "  skipped, as its on_load_error says:", indented(s.Skipped))
	case s.Mode == "off":
		say("  off, so that nothing of it is looked at")
	default:
		say("  starts")
	}
}

// String is for one line.
func (o origin) String() string {
	parts := append(append([]string{}, o.Languages...), o.Tools...)
	if o.Package != "" {
		parts = append(parts, "package "+o.Package)
	}
	return strings.Join(parts, ", ")
}

func (m memoryLine) String() string {
	parts := []string{size(m.Initial) + " to begin with"}
	if m.Used > 0 {
		parts = append(parts, size(m.Used)+" in the runs below")
	}
	if m.Maximum > 0 {
		parts = append(parts, size(m.Maximum)+" at most")
	}
	return strings.Join(parts, ", ")
}

// size writes bytes for a person.
func size(bytes uint64) string {
	switch {
	case bytes < 1e3:
		return counted(int64(bytes), "byte")
	case bytes < 1e6:
		return fmt.Sprintf("%.1f kB", float64(bytes)/1e3)
	case bytes < 1e9:
		return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(bytes)/1e9)
}
