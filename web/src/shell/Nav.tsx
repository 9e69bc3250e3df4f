import { IconChecklist, IconDatabase, IconHome, IconKey, IconListDetails } from "@tabler/icons-react";
import type { Icon } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "react-router";
import { useMe } from "../api/queries";
import classes from "./Shell.module.css";

export const destinations = [
  { to: "/", key: "home", icon: IconHome },
  { to: "/applications", key: "applications", icon: IconKey },
  { to: "/resources", key: "resources", icon: IconDatabase },
  { to: "/requests", key: "requests", icon: IconListDetails },
  { to: "/approvals", key: "approvals", icon: IconChecklist },
] as const satisfies readonly { to: string; key: string; icon: Icon }[];

/** Whether a path belongs to a destination; a ticket is one of the requests. */
function isUnder(pathname: string, to: string): boolean {
  const home = pathname.startsWith("/tickets/") ? "/requests" : pathname;
  return to === "/" ? home === "/" : home === to || home.startsWith(`${to}/`);
}

export function Brand() {
  return (
    <Link to="/" className={classes.brand} aria-label="ACP">
      <img src="/favicon.svg" width={24} height={24} alt="" />
      ACP
    </Link>
  );
}

export function Nav({ onNavigate }: { onNavigate?: () => void }) {
  const { t } = useTranslation();
  const { pathname } = useLocation();
  const me = useMe();
  const waiting = me.data?.pendingApprovals ?? 0;
  return (
    <nav aria-label={t("nav.label")}>
      <ul className={classes.nav}>
        {destinations.map(({ to, key, icon: Icon }) => (
          <li key={key}>
            <Link to={to} className={classes.link} aria-current={isUnder(pathname, to) ? "page" : undefined} onClick={onNavigate} data-testid={`nav-${key}`}>
              <Icon size={18} stroke={1.7} aria-hidden />
              {t(`nav.${key}`)}
              {key === "approvals" && waiting > 0 && (
                <span className={classes.count} data-testid="approvals-count" title={t("nav.waiting", { count: waiting })}>
                  {waiting}
                </span>
              )}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
