import { IconChecklist, IconDatabase, IconHome, IconKey, IconListDetails } from "@tabler/icons-react";
import type { Icon } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { NavLink } from "react-router";
import { useMe } from "../api/queries";
import classes from "./Shell.module.css";

export const destinations = [
  { to: "/", key: "home", icon: IconHome },
  { to: "/applications", key: "applications", icon: IconKey },
  { to: "/resources", key: "resources", icon: IconDatabase },
  { to: "/requests", key: "requests", icon: IconListDetails },
  { to: "/approvals", key: "approvals", icon: IconChecklist },
] as const satisfies readonly { to: string; key: string; icon: Icon }[];

export function Brand() {
  return (
    <NavLink to="/" className={classes.brand} aria-label="ACP">
      <img src="/favicon.svg" width={24} height={24} alt="" />
      ACP
    </NavLink>
  );
}

export function Nav({ onNavigate }: { onNavigate?: () => void }) {
  const { t } = useTranslation();
  const me = useMe();
  const waiting = me.data?.pendingApprovals ?? 0;
  return (
    <nav aria-label={t("nav.label")}>
      <ul className={classes.nav}>
        {destinations.map(({ to, key, icon: Icon }) => (
          <li key={key}>
            <NavLink to={to} end={to === "/"} className={classes.link ?? ""} {...(onNavigate ? { onClick: onNavigate } : {})} data-testid={`nav-${key}`}>
              <Icon size={18} stroke={1.7} aria-hidden />
              {t(`nav.${key}`)}
              {key === "approvals" && waiting > 0 && (
                <span className={classes.count} data-testid="approvals-count" title={t("nav.waiting", { count: waiting })}>
                  {waiting}
                </span>
              )}
            </NavLink>
          </li>
        ))}
      </ul>
    </nav>
  );
}
