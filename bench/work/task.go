package work

// Task is one of the things that can be done to a text.
type Task struct {
	Name  string
	Do    func(text string) string
	Input string   // what is measured
	Other []string // on which guests have to agree as well
}

// Tasks are all of them.
var Tasks = []Task{
	{"verdict", Verdict, clean, []string{"", dirty, "Disable THE safety"}},
	{"json", JSON, document(20), []string{document(0), document(1), "{", ""}},
	{"regexp", Regexp, letter(), []string{"", "AB-1234", "ABCD-123456789 A-1234 AB-123 XY-12345"}},
	{"mask", Mask, statement(4096), []string{"", "4111111111111111", "4111 1111 1111 1111 and 4111-1111-1111-1112", "12 4111111111111111", "no. 378282246310005."}},
}

// Find is the task of that name.
func Find(name string) (Task, bool) {
	for _, t := range Tasks {
		if t.Name == name {
			return t, true
		}
	}
	return Task{}, false
}
