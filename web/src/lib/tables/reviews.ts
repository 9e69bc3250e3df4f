/** Tables of access reviews, as files. */
import type { AccessReview, ReviewLine } from "../../api/types";
import type { CsvTable } from "../csv";
import { people, person } from "./cells";

/** reviewsCSV is the table of access reviews. */
export const reviewsCSV: CsvTable<AccessReview> = {
  file: "access-reviews",
  columns: {
    review: (row) => row.id,
    name: (row) => row.name,
    state: (row) => row.state,
    "created by": (row) => person(row.createdBy),
    created: (row) => row.createdAt,
    deadline: (row) => row.deadline,
    silence: (row) => row.silence,
    closed: (row) => row.closedAt,
    ended: (row) => row.endedAt,
    "end reason": (row) => row.endReason,
  },
};

/** reviewLinesCSV is the table of the lines of a review that the reader sees; the report of a review contains more. */
export const reviewLinesCSV: CsvTable<ReviewLine> = {
  file: "access-review-lines",
  columns: {
    review: (row) => row.review,
    line: (row) => row.line,
    application: (row) => row.application?.name ?? row.scope?.subjects,
    "application title": (row) => row.application?.title ?? row.scope?.subjectRefs?.map(({ title }) => title),
    resource: (row) => row.resource?.name ?? row.scope?.resources,
    "resource title": (row) => row.resource?.title ?? row.scope?.resourceRefs?.map(({ title }) => title),
    kind: (row) => (row.scope ? "statement" : "grant"),
    actions: (row) => row.actions,
    since: (row) => row.since,
    end: (row) => row.end,
    ticket: (row) => row.ticket,
    "last used": (row) => row.evidence.lastUsed,
    connections: (row) => row.evidence.count,
    days: (row) => row.evidence.days,
    watched: (row) => row.evidence.watched,
    recommendation: (row) => row.recommendation,
    reviewers: (row) => people(row.reviewers),
    state: (row) => row.state,
    decision: (row) => row.decision,
    "decided by": (row) => person(row.decidedBy),
    "decided at": (row) => row.decidedAt,
    comment: (row) => row.comment,
  },
};
