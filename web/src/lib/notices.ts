/** noticeKinds contains the kinds of notifications, the most urgent first. The server may have more kinds. */
export const noticeKinds = [
  "break-glass", "voided", "escalated", "approval-needed", "undecided", "failed", "rollout", "access-review", "decided", "effective", "revoked", "expires-soon",
  "decided-by-colleague", "comment", "delegation",
] as const;

/** NoticeKind is a kind of notification that the web UI has texts for. */
export type NoticeKind = (typeof noticeKinds)[number];

/** isNoticeKind reports whether the web UI has texts for the kind of notification. */
export const isNoticeKind = (kind: string): kind is NoticeKind => noticeKinds.some((each) => each === kind);
