package approval

// Prefixes of the lines that show what an item grants. Like the "+" and "-" of a diff, a prefix determines the meaning of its line. The
// digest that approvals are bound to is computed from the lines, so they are the same in every language; LineMessage translates them.
const (
	// LineAllow is the beginning of a line that gives access. It names clients.
	LineAllow = "allow "
	// LineDeny is the beginning of a line that refuses access. It names clients.
	LineDeny = "deny "
	// LineRefused is the beginning of a line about a statement that is not enforced. It never gives access.
	LineRefused = "refused: "
	// LineAdded is the beginning of a difference that is new, before one of the others.
	LineAdded = "+ "
	// LineRemoved is the beginning of a difference that is gone, before one of the others.
	LineRemoved = "- "

	// lineTakesAway is the beginning of a line about access that a revocation ends.
	lineTakesAway = "takes away: "
	// lineNoLonger is the beginning of a difference that names a line of the kind LineDeny that is gone.
	lineNoLonger = "no longer: "
	// lineHours precedes the hours to which the access of an item is restricted.
	lineHours = "only during "
	// linePackage precedes the access package that an item is a part of.
	linePackage = "package "
	// lineGiven precedes the ticket of the version that is given to a holder of an access package.
	lineGiven = "given to a holder of the access package by "
)
