import type { Person, Step } from "../api/types";

/** common returns the value that several steps have in common, and undefined if one of them has another or there is only one step. */
export function common<T>(values: (T | undefined)[]): T | undefined {
  const [first, ...others] = values;
  const text = JSON.stringify(first);
  return others.length > 0 && others.every((each) => JSON.stringify(each) === text) ? first : undefined;
}

/** StepTimeout is what happens if a step is not decided in time. */
export interface StepTimeout {
  seconds: number;
  action: NonNullable<Step["onTimeout"]>;
  /** The people who can decide after an escalation, in addition to the approvers of the step. At most some of them are listed. */
  people: Person[];
  /** The number of all these people. */
  total: number;
}

/** timeoutOf returns the timeout of a step, and undefined if it has none or has been escalated. */
export function timeoutOf({ timeoutSeconds, onTimeout = "Remind", escalateTo = [], escalateTotal = escalateTo.length, escalated }: Step): StepTimeout | undefined {
  return escalated || timeoutSeconds === undefined ? undefined : { seconds: timeoutSeconds, action: onTimeout, people: escalateTo, total: escalateTotal };
}

/** openSteps returns the steps of a chain that people still decide. */
export const openSteps = (steps: Step[]): Step[] => steps.filter(({ auto, state }) => !auto && (state === "current" || state === "waiting"));

/** CommonRules contains the rules that all open steps of a chain have in common, which are shown once. */
export interface CommonRules {
  timeout: StepTimeout | undefined;
  remindSeconds: number | undefined;
}

/** commonRules returns the rules that all open steps of a chain have in common. */
export function commonRules(steps: Step[]): CommonRules {
  const open = openSteps(steps);
  return { timeout: common(open.map(timeoutOf)), remindSeconds: common(open.map(({ remindSeconds }) => remindSeconds)) };
}
