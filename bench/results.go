package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

const resultsHead = "# Results\n\nWritten by `make bench`; README.md says what each figure means.\n"

// record puts the tables into a file. Those of what was not measured stay.
func record(path string, s settings, parts []part) error {
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	sections := sectionsOf(string(before))
	about := machine(s)
	for _, p := range parts {
		if len(p.figures) > 0 {
			sections[p.name] = about + "\n\n" + markdown(p.figures)
		}
	}
	var b strings.Builder
	b.WriteString(resultsHead)
	for _, name := range names() {
		if text, is := sections[name]; is {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", name, strings.TrimSpace(text))
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// sectionsOf are the texts below the headings of items that there still are.
func sectionsOf(text string) map[string]string {
	sections := map[string]string{}
	for i, section := range strings.Split(text, "\n## ") {
		name, body, _ := strings.Cut(section, "\n")
		if i > 0 && slices.Contains(names(), name) {
			sections[name] = body
		}
	}
	return sections
}

func markdown(all []figure) string {
	var b strings.Builder
	b.WriteString("| what | unit | ours | peer | judged | goal |\n|---|---|---|---|---|---|\n")
	for _, f := range all {
		peer := ""
		if f.PeerName != "" {
			peer = number(f.Peer) + " " + f.PeerName
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s = %s | %s |\n", f.Name, f.Unit, number(f.Ours), peer, f.JudgedAs, number(f.Judged), f.goal())
	}
	return b.String()
}

// machine says where and with what was measured.
func machine(s settings) string {
	return fmt.Sprintf("%s; %s; %d cores, load average %s; %s; %s/%s; %s; %d rounds; wazero %s, ADK %s%s.",
		time.Now().UTC().Format("2006-01-02 15:04 UTC"), processor(), runtime.NumCPU(), load(), kernel(),
		runtime.GOOS, runtime.GOARCH, runtime.Version(), s.rounds,
		version("github.com/tetratelabs/wazero"), version("google.golang.org/adk/v2"), redisVersion())
}

func processor() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// load is the load average of the last minute: above the number of cores
// others were at work as well.
func load() string {
	average, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(average), " ")
	return first
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "unknown kernel"
	}
	return "kernel " + string(bytes.TrimSpace(release))
}

// version is that of a module in this program.
func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version
			}
		}
	}
	return "unknown"
}

// redisVersion is empty where there is no Redis.
func redisVersion() string {
	out, err := exec.Command("redis-server", "--version").Output()
	if err != nil {
		return ""
	}
	_, after, found := strings.Cut(string(out), "v=")
	if !found {
		return ""
	}
	number, _, _ := strings.Cut(after, " ")
	return ", Redis " + number
}
