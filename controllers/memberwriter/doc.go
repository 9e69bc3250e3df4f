// Package memberwriter writes revocations and policies that open what was closed into the members directly while KubeFed is behind or does not
// work: 10,000 policies that are opened in an emergency take KubeFed 500 seconds, and a revocation would wait behind them. Address
// groups are always left to KubeFed.
//
// Whether KubeFed is behind is decided by backlog.Tracker. What must wait meanwhile, grants and bulk changes, is decided by package
// writequeue.
//
// The Federated object is written first. What is then written into a member is exactly what the Federated object has for it, with
// KubeFed's own account, and only if the member still has the revision that was read. KubeFed later finds the member as it would
// have written it. A write that fails is left to KubeFed: it is not retried, and the status reports only what is read back.
package memberwriter
