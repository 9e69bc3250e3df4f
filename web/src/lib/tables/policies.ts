/** Tables of approval policies and organizations, as files. */
import type { ApprovalPolicy, Organization } from "../../api/types";
import type { CsvTable } from "../csv";
import { people, person } from "./cells";

/** approvalPoliciesCSV is the table of approval policies, in the order in which they are matched. */
export const approvalPoliciesCSV: CsvTable<ApprovalPolicy> = {
  file: "approval-policies",
  columns: {
    policy: (row) => row.name,
    priority: (row) => row.priority,
    "built in": (row) => row.builtin,
    organization: (row) => row.organization,
    match: (row) => row.match,
    steps: (row) => row.steps.map(({ name, approvers, quorum }) => `${name}: ${approvers.join(", ")} (${quorum})`),
    "automatic approval": (row) => row.steps.filter(({ autoApprove }) => autoApprove).map(({ name, autoApprove }) => `${name}: ${autoApprove ?? ""}`),
    "no automatic approval if": (row) => row.denyAutoApprove,
    "replaces owners": (row) => row.replaceOwners ?? false,
    "longest access in seconds": (row) => row.maxDurationSeconds,
    "break glass": (row) => row.breakGlassPeople?.map((each) => person(each)),
    accepted: (row) => row.accepted,
    message: (row) => row.message?.text,
  },
};

/** organizationsCSV is the table of organizations. */
export const organizationsCSV: CsvTable<Organization> = {
  file: "organizations",
  columns: {
    organization: (row) => row.name,
    title: (row) => row.title,
    teams: (row) => people(row.teams),
    administrators: (row) => people(row.administrators),
    classes: (row) => row.classes.map(({ name }) => name),
    "approval policies": (row) => row.policies.map(({ name }) => name),
    "outside of the bounds": (row) => [...row.classes, ...row.policies].filter(({ accepted }) => !accepted).map(({ name }) => name),
    accepted: (row) => row.accepted,
    message: (row) => row.message?.text,
  },
};
