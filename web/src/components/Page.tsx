import { useContext, useId, useLayoutEffect } from "react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import { useEmbedded } from "../lib/embed";
import { SectionIndexContext } from "../lib/section-index";
import classes from "./Page.module.css";

/** Crumb is one entry of the breadcrumbs. */
export interface Crumb {
  /** Absent for the page itself. */
  to?: string;
  label: string;
}

interface PageProps {
  /** The heading, which is also the document's title. */
  title: string;
  heading?: ReactNode;
  sub?: ReactNode;
  actions?: ReactNode;
  crumbs?: Crumb[];
  wide?: boolean;
  children: ReactNode;
}

/** Page is the frame of a page: document title, breadcrumbs (not in a frame of another site), heading, actions and content. */
export function Page({ title, heading, sub, actions, crumbs, wide = false, children }: PageProps) {
  const { t } = useTranslation();
  const embedded = useEmbedded();
  return (
    <div className={wide ? `${classes.page} ${classes.wide}` : classes.page}>
      <title>{`${title} · ACP`}</title>
      {crumbs && !embedded && (
        <nav aria-label={t("nav.breadcrumbs")}>
          <ol className={classes.crumbs}>
            {crumbs.map((crumb) => (
              <li key={crumb.label} aria-current={crumb.to === undefined ? "page" : undefined}>
                {crumb.to === undefined ? crumb.label : <Link to={crumb.to}>{crumb.label}</Link>}
              </li>
            ))}
          </ol>
        </nav>
      )}
      <header className={classes.head}>
        <div className={classes.titles}>
          <h1 className={classes.title}>{heading ?? title}</h1>
          {sub && <div className={classes.sub}>{sub}</div>}
        </div>
        {actions}
      </header>
      {children}
    </div>
  );
}

interface SectionProps {
  /** The target of links with a fragment, also of the index of the page. */
  anchor?: string;
  title: string;
  count?: number | undefined;
  /** Whether there may be more than `count`. */
  atLeast?: boolean;
  aside?: ReactNode;
  testId?: string;
  children: ReactNode;
}

/** Section is a part of a page with a heading of its own. */
export function Section({ anchor, title, count, atLeast = false, aside, testId, children }: SectionProps) {
  const id = useId();
  const add = useContext(SectionIndexContext);
  useLayoutEffect(() => (anchor === undefined ? undefined : add({ anchor, title })), [add, anchor, title]);
  return (
    <section id={anchor} className={classes.section} aria-labelledby={id} data-testid={testId}>
      <div className={classes.sectionHead}>
        <h2 className={classes.sectionTitle} id={id} tabIndex={anchor === undefined ? undefined : -1}>
          {title}
          {count !== undefined && count > 0 && <span className={classes.count}>{atLeast ? `${count}+` : count}</span>}
        </h2>
        {aside && <div className={classes.aside}>{aside}</div>}
      </div>
      {children}
    </section>
  );
}
