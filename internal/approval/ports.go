package approval

// Classes answers what can be asked for; false: no class covers the name.
type Classes interface {
	// ResourceActions are the actions of the resource's class. The error says that the host cluster is not known yet.
	ResourceActions(resource string) ([]string, bool, error)
	// SubjectCovered tells whether a subject class covers the application.
	SubjectCovered(application string) (bool, error)
}
