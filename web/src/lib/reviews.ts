/** Facts about access reviews that several views need. */
import type { AccessReview, CatalogRef, NewAccessReview, ReviewDecision, ReviewLine, ReviewOutcome, ReviewRecommendation, Sensitivity } from "../api/types";
import { enumeration } from "./list";
import { displayName } from "./names";

/** recommendations contains the recommendations in display order. */
export const recommendations = ["revoke", "shorten", "none", "keep"] as const satisfies readonly ReviewRecommendation[];
/** outcomes contains the outcomes in display order. */
export const outcomes = ["kept", "shortened", "revoked", "ended", "skipped"] as const satisfies readonly ReviewOutcome[];
/** decisions contains the decisions in display order. */
export const decisions = ["keep", "shorten", "revoke"] as const satisfies readonly ReviewDecision[];

/** decidedOf returns how many lines of a review have a decision or an outcome. */
export const decidedOf = ({ counts }: AccessReview) => counts.total - counts.open;

/** needsReason reports whether a decision needs a reason: if it takes access away, or keeps what the evidence recommends to end. */
export function needsReason(decision: ReviewDecision, lines: Pick<ReviewLine, "recommendation">[]): boolean {
  return decision !== "keep" || lines.some(({ recommendation }) => recommendation === "shorten" || recommendation === "revoke");
}

/** ReviewedAccess is what a line of a review is about: an application and a resource, or the scope of a statement. */
export type ReviewedAccess = Pick<ReviewLine, "application" | "resource" | "scope">;

/** namesAtOnce is the number of names of a statement that a short text contains. */
const namesAtOnce = 3;

const endName = (language: string, about: CatalogRef | undefined, names: string[] = [], refs: CatalogRef[] = []) =>
  about?.title ?? enumeration(names.map((name) => displayName(name, refs)), language, namesAtOnce);

/** accessName returns a short name of an access: the titles of its application and its resource, or the first names of a statement. */
export const accessName = ({ application, resource, scope }: ReviewedAccess, language: string): string =>
  `${endName(language, application, scope?.subjects, scope?.subjectRefs)} → ${endName(language, resource, scope?.resources, scope?.resourceRefs)}`;

/** mostRules is the maximum number of rules of a review that name reviewers. */
export const mostRules = 10;

/** ruleKinds contains the kinds of rules that name reviewers, in display order. */
export const ruleKinds = ["resource-owner", "application-leader", "group"] as const;
/** RuleKind is the kind of a rule that names reviewers. */
export type RuleKind = (typeof ruleKinds)[number];

const groupPrefix = "group:";

/** ruleKindOf returns the kind of a rule, and the id of its group if it names one. */
export function ruleKindOf(rule: string): { kind: RuleKind; group: string } {
  if (rule.startsWith(groupPrefix)) return { kind: "group", group: rule.slice(groupPrefix.length) };
  return { kind: rule === "application-leader" ? rule : "resource-owner", group: "" };
}

/** groupRule returns the rule that names the members of a group. */
export const groupRule = (group: string): string => `${groupPrefix}${group}`;

/** linesAtOnce is the maximum number of lines that the server decides in one call. */
export const linesAtOnce = 200;

/** ReviewForm contains the values of the form for an access review. Periods are in days. */
export interface ReviewForm {
  name: string;
  classes: string[];
  teams: string[];
  sensitivities: Sensitivity[];
  olderThan: number | undefined;
  /** The rules that name the reviewers, in the order in which they are tried. */
  rules: string[];
  silence: AccessReview["silence"];
  grace: number | undefined;
  due: number | undefined;
  window: number | undefined;
  remind: number | undefined;
}

/** emptyForm contains the values with which the form opens. */
export const emptyForm: ReviewForm = {
  name: "", classes: [], teams: [], sensitivities: [], olderThan: undefined, rules: ["resource-owner", "application-leader"],
  silence: "shorten", grace: 14, due: 14, window: 90, remind: 3,
};

/** scopeOf returns the scope that a link to the form contains: the parameters `class` and `team`, each as often as there are values. */
export const scopeOf = (search: URLSearchParams): Pick<ReviewForm, "classes" | "teams"> => ({
  classes: search.getAll("class").filter((each) => each !== ""),
  teams: search.getAll("team").filter((each) => each !== ""),
});

const millisecondsPerDay = 86_400_000;

/** reviewOf returns the request of a form. It is undefined while a required number is missing. */
export function reviewOf(form: ReviewForm, now: Date): NewAccessReview | undefined {
  if (form.due === undefined || form.window === undefined || (form.silence === "shorten" && form.grace === undefined)) return undefined;
  const scope: NonNullable<NewAccessReview["scope"]> = {};
  if (form.classes.length > 0) scope.classes = form.classes;
  if (form.teams.length > 0) scope.teams = form.teams;
  if (form.sensitivities.length > 0) scope.sensitivities = form.sensitivities;
  if (form.olderThan) scope.olderThanDays = form.olderThan;
  // Whole minutes, so that the preview is not asked again for each change of the clock.
  const due = new Date(Math.ceil((now.getTime() + form.due * millisecondsPerDay) / 60_000) * 60_000);
  const body: NewAccessReview = {
    name: form.name.trim(),
    scope,
    reviewers: form.rules.filter((rule, at, all) => rule !== groupRule("") && all.indexOf(rule) === at),
    silence: form.silence,
    deadline: due.toISOString(),
    windowDays: form.window,
    graceDays: form.grace ?? 1,
  };
  if (form.remind) body.remindEveryDays = form.remind;
  return body;
}
