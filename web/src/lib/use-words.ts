/** Words that need the language: durations, lists, names of steps. */
import { useTranslation } from "react-i18next";
import type { Message, Step } from "../api/types";
import { enumeration, listText } from "./list";
import { render } from "./message";
import { accessName } from "./reviews";
import type { ReviewedAccess } from "./reviews";
import { elapsed, wholeUnits } from "./time";
import { useZone } from "./use-zone";

function isDefaultStep(name: string): name is "leader" | "owner" | "publisher" | "security" {
  return name === "leader" || name === "owner" || name === "publisher" || name === "security";
}

/** ownedResource returns the resource that a built-in step names, `owner:bobs-cluster`, where several resources have owners of their own. */
const ownedResource = (name: string): string | undefined => (name.startsWith("owner:") ? name.slice("owner:".length) : undefined);

/** cut splits an approver expression into its kind and the name after the colon. */
function cut(expression: string): [kind: string, name: string] {
  const colon = expression.indexOf(":");
  return colon < 0 ? [expression, ""] : [expression.slice(0, colon), expression.slice(colon + 1)];
}

/** useWords returns functions that render durations, numbers, lists, messages and names of steps in the person's language. */
export function useWords() {
  const { t, i18n } = useTranslation();
  const zone = useZone();
  return {
    /** `7 days`, or `until revoked` when there is no end. */
    duration(seconds: number | undefined): string {
      if (seconds === undefined) return t("time.untilRevoked");
      const { unit, count } = wholeUnits(seconds);
      return t(`time.${unit}`, { count });
    },
    /** `for 7 days` or `until revoked`, as the end of a sentence. */
    lasting(seconds: number | undefined): string {
      return seconds === undefined ? t("time.untilRevoked") : t("time.for", { duration: this.duration(seconds) });
    },
    /** span returns a rounded duration: `3 min`, `1.5 h`. */
    span(seconds: number): string {
      return elapsed(seconds * 1_000, i18n.language);
    },
    list(items: string[]): string {
      return listText(items, i18n.language);
    },
    /** access returns a short name of the access that a line of a review is about. */
    access(of: ReviewedAccess): string {
      return accessName(of, i18n.language);
    },
    /** names returns names without a conjunction: `a, b, c`. With a limit, it has the first names and the number of the others: `a, b +3`. */
    names(names: string[], limit?: number): string {
      return enumeration(names, i18n.language, limit);
    },
    /** The name of a step. Names in approval policies are shown as they are; the steps of the built-in chain have translations. */
    step(name: string): string {
      if (isDefaultStep(name)) return t(`step.${name}`);
      const resource = ownedResource(name);
      return resource === undefined ? name : t("step.ownerOf", { resource });
    },
    /** The approvers of a step, as a list. They are derived from the expressions that select them, because a step of a policy may have any name. */
    stepWho(step: Pick<Step, "name" | "from" | "quorum" | "approvers"> | undefined): string {
      const who = (step?.from ?? []).map((expression) => {
        const [kind, name] = cut(expression);
        switch (kind) {
          case "requester.leader":
            return t("stepWho.leader");
          case "resource.owner":
            return t("stepWho.owner");
          case "application.owner":
            return t("stepWho.applicationOwner");
          case "owner-of":
            return t("stepWho.ownerOf", { resource: name });
          case "group":
            return name === "security" ? t("stepWho.security") : t("stepWho.group", { group: name });
          default:
            return step?.approvers.find(({ id }) => id === name)?.displayName ?? name;
        }
      });
      if (who.length === 0) return t("stepWho.step", { step: this.step(step?.name ?? "") });
      return listText(who, i18n.language, { type: (step?.quorum ?? 1) > 1 ? "conjunction" : "disjunction" });
    },
    /** The text of a message in the language of the page, with times in the reader's zone. A plain string is returned unchanged. */
    message(text: Message | string): string {
      return typeof text === "string" ? text : render(text, i18n.language, zone);
    },
    number(value: number): string {
      return new Intl.NumberFormat(i18n.language).format(value);
    },
  };
}
