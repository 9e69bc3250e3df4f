/** Kinds of notifications, the most urgent first. The server may have more kinds. */
export const noticeKinds = [
  "break-glass", "voided", "escalated", "approval-needed", "failed", "rollout", "access-review", "decided", "effective", "revoked", "expires-soon",
  "decided-by-colleague", "comment", "delegation",
] as const;

export type NoticeKind = (typeof noticeKinds)[number];

export const isNoticeKind = (kind: string): kind is NoticeKind => noticeKinds.some((each) => each === kind);
