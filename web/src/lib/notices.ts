/** Why somebody is told something, the most urgent first; the server may know more kinds than these. */
export const noticeKinds = [
  "break-glass", "voided", "escalated", "approval-needed", "failed", "rollout", "decided", "effective", "revoked", "expires-soon",
  "decided-by-colleague", "comment", "delegation",
] as const;

export type NoticeKind = (typeof noticeKinds)[number];

export const isNoticeKind = (kind: string): kind is NoticeKind => noticeKinds.some((each) => each === kind);
