/** Tables of a person's tokens and sessions, and of notifications, as files. */
import type { SessionInfo, Token, Undelivered } from "../../api/types";
import type { CsvTable } from "../csv";
import { person } from "./cells";

/** tokensCSV is the table of the reader's tokens, without their secrets. */
export const tokensCSV: CsvTable<Token> = {
  file: "tokens",
  columns: { id: (row) => row.id, name: (row) => row.name, scopes: (row) => row.scopes, created: (row) => row.createdAt, expires: (row) => row.expiresAt, "last used": (row) => row.lastUsedAt },
};

/** sessionsCSV is the table of the reader's sessions. */
export const sessionsCSV: CsvTable<SessionInfo> = {
  file: "sessions",
  columns: { browser: (row) => row.userAgent, current: (row) => row.current, "signed in": (row) => row.createdAt, ends: (row) => row.expiresAt },
};

/** undeliveredCSV is the table of notifications that could not be delivered. */
export const undeliveredCSV: CsvTable<Undelivered> = {
  file: "undelivered-notifications",
  columns: {
    kind: (row) => row.kind,
    ticket: (row) => row.ticket,
    to: (row) => person(row.person),
    channel: (row) => row.channel,
    problem: (row) => row.problem,
    attempts: (row) => row.attempts,
    created: (row) => row.at,
    "given up": (row) => row.givenUpAt,
  },
};
