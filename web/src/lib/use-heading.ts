import { useTranslation } from "react-i18next";
import type { ObjectChange, StatementScope, Ticket, TicketItem, TicketKind } from "../api/types";
import { displayName } from "./names";

type Named = Pick<TicketItem, "application" | "resource" | "target" | "object" | "workload" | "package" | "scope" | "fromMode" | "toMode">;

/** useHeading returns the functions that return the heading of a ticket and of an item. Lists, the page and the document's title use the same headings. */
export function useHeading() {
  const { t } = useTranslation();

  const object = ({ kind, name, verb }: ObjectChange) => t(`ticket.object.${verb}`, { kind: t(`objectKind.${kind}`), name });

  const subject = ({ subjects: [first = ""], subjectRefs }: StatementScope) => (first === "*" ? t("accessReview.anyone") : displayName(first, subjectRefs));

  const item = (of: Named, kind: TicketKind): string => {
    const application = of.application?.title;
    const resource = of.resource?.title ?? "";
    const access = application ? t("ticket.heading", { application, resource }) : (of.target?.ticket ?? resource);
    switch (kind) {
      case "grant":
        return access;
      case "extend":
      case "revoke":
        return t(`ticket.of.${kind}`, { access });
      case "mode": {
        const to = of.toMode ? t(`mode.${of.toMode}`) : "";
        return of.fromMode ? t("ticket.of.mode", { resource, from: t(`mode.${of.fromMode}`), to }) : t("ticket.of.modeTo", { resource, to });
      }
      case "onboard":
        return of.toMode ? t("ticket.of.onboard", { resource, mode: t(`mode.${of.toMode}`) }) : t("ticket.of.onboardPlain", { resource });
      case "offboard":
        return t("ticket.of.offboard", { resource });
      case "class":
      case "approval-policy":
        return of.object ? object(of.object) : t(`kind.${kind}`);
      case "workload":
        return of.workload ? t(of.workload.before.length > 0 ? "ticket.of.workloadChange" : "ticket.of.workload", { id: of.workload.id, application: application ?? "" }) : t(`kind.${kind}`);
      case "statement":
        return of.scope ? t(`ticket.of.statement${of.scope.effect}`, { subject: subject(of.scope), resource: displayName(of.scope.resources[0] ?? "", of.scope.resourceRefs) }) : t(`kind.${kind}`);
      case "package":
        return of.package ? t("packages.heading", { title: of.package.title ?? of.package.name, version: of.package.version }) : t(`kind.${kind}`);
    }
  };

  const ticket = (of: Ticket): string => {
    const [first, ...more] = of.items;
    if (!first) return of.id;
    const heading = item(first, of.kind);
    return more.length === 0 ? heading : t("ticket.headingMore", { heading, count: more.length });
  };

  return { ticket, item };
}
