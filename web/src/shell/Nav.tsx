import { useId } from "react";
import { useTranslation } from "react-i18next";
import { Link, useLocation } from "react-router";
import { useMe } from "../api/queries";
import { destinations, isUnder, useGoverning } from "./destinations";
import classes from "./Shell.module.css";

/** Brand shows the logo and links the first page. */
export function Brand() {
  return (
    <Link to="/" className={classes.brand} aria-label="ACP">
      <img src="/favicon.svg" width={24} height={24} alt="" />
      ACP
    </Link>
  );
}

/** Nav links the destinations of the navigation that the person may see. */
export function Nav({ onNavigate }: { onNavigate?: () => void }) {
  const { t } = useTranslation();
  const { pathname } = useLocation();
  const id = useId();
  const me = useMe();
  const waiting = me.data?.pendingApprovals ?? 0;
  const governing = useGoverning();
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
      {governing.length > 0 && (
        <>
          <h2 className={classes.navTitle} id={id}>{t("governing.label")}</h2>
          <ul className={classes.nav} aria-labelledby={id}>
            {governing.map(({ to, key, icon: Icon }) => (
              <li key={key}>
                <Link to={to} className={classes.link} aria-current={isUnder(pathname, to) ? "page" : undefined} onClick={onNavigate} data-testid={`nav-${key}`}>
                  <Icon size={18} stroke={1.7} aria-hidden />
                  {t(`governing.${key}`)}
                </Link>
              </li>
            ))}
          </ul>
        </>
      )}
    </nav>
  );
}
