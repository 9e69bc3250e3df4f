// Package charts tests the Helm charts in the folders beside it: what they render, which values they refuse, what a real API server says of
// their objects, and what installing, upgrading and uninstalling them leaves behind. It is a module of its own, so that Helm stays out of
// the product.
package charts
