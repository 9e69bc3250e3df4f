/** The destinations of the navigation, and the roles that see them. */
import { IconAlertTriangle, IconArrowsExchange, IconBell, IconBook2, IconChecklist, IconClipboardCheck, IconDatabase, IconHome, IconGavel, IconKey, IconLifebuoy, IconListDetails, IconMap2, IconNetwork, IconPackage, IconPlugConnectedX, IconScale, IconServer2, IconStack2, IconStairsUp, IconTerminal2, IconTopologyStar3, IconUserCog, IconUserShare, IconVocabulary } from "@tabler/icons-react";
import type { Icon } from "@tabler/icons-react";
import { useMe } from "../api/queries";
import type { Role } from "../api/types";

/** destinations contains the pages of the navigation that everybody sees. */
export const destinations = [
  { to: "/", key: "home", icon: IconHome },
  { to: "/applications", key: "applications", icon: IconKey },
  { to: "/resources", key: "resources", icon: IconDatabase },
  { to: "/packages", key: "packages", icon: IconPackage },
  { to: "/requests", key: "requests", icon: IconListDetails },
  { to: "/approvals", key: "approvals", icon: IconChecklist },
] as const satisfies readonly { to: string; key: string; icon: Icon }[];

const overseers: readonly Role[] = ["security", "auditor"];

/** governing contains the destinations of the governance section with the roles that see them, which are undefined if everybody does. */
const governing = [
  { to: "/rollout", key: "rollout", icon: IconStairsUp, roles: ["resource-owner", ...overseers] as const },
  { to: "/flows", key: "flows", icon: IconArrowsExchange, roles: undefined },
  { to: "/traffic", key: "trafficMap", icon: IconTopologyStar3, roles: undefined },
  { to: "/unused", key: "unused", icon: IconPlugConnectedX, roles: ["application-owner", "resource-owner", ...overseers] as const },
  { to: "/reviews", key: "reviews", icon: IconClipboardCheck, roles: undefined },
  { to: "/fleet", key: "fleet", icon: IconNetwork, roles: overseers },
  { to: "/access", key: "accessMap", icon: IconMap2, roles: overseers },
  { to: "/access-policies", key: "accessPolicies", icon: IconGavel, roles: overseers },
  { to: "/findings", key: "findings", icon: IconAlertTriangle, roles: overseers },
  { to: "/downgrade", key: "downgrade", icon: IconLifebuoy, roles: overseers },
  { to: "/delegations", key: "delegations", icon: IconUserShare, roles: undefined },
  { to: "/workloads", key: "workloads", icon: IconServer2, roles: ["application-owner", ...overseers] as const },
  { to: "/policies", key: "policies", icon: IconScale, roles: undefined },
  { to: "/catalog", key: "catalog", icon: IconStack2, roles: overseers },
  { to: "/ledger", key: "ledger", icon: IconBook2, roles: overseers },
] as const satisfies readonly { to: string; key: string; icon: Icon; roles: readonly Role[] | undefined }[];

/** own contains the person's own pages, which the top bar links. */
export const own = [
  { to: "/inbox", key: "inbox", icon: IconBell },
  { to: "/profile", key: "profile", icon: IconUserCog },
  { to: "/device", key: "device", icon: IconTerminal2 },
  { to: "/terms", key: "terms", icon: IconVocabulary },
] as const satisfies readonly { to: string; key: string; icon: Icon }[];

/**
 * useGoverning returns the destinations of the governance section that the person may see. It is empty until the person is known, so that links do not
 * disappear again.
 */
export function useGoverning() {
  const mine = useMe().data?.roles;
  return mine ? governing.filter(({ roles }) => roles === undefined || roles.some((role) => mine.includes(role))) : [];
}

/** isUnder reports whether a path belongs to a destination; a ticket belongs to the requests, classes and organizations belong to the policies. */
export function isUnder(pathname: string, to: string): boolean {
  const home = pathname.startsWith("/tickets/") ? "/requests" : pathname === "/classes" || pathname === "/organizations" || pathname.startsWith("/organizations/") ? "/policies" : pathname;
  return to === "/" ? home === "/" : home === to || home.startsWith(`${to}/`);
}
